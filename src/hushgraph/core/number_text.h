// Parsing of numbers in text, shared by all file readers. A decimal number of up to 18 digits with a power of ten up to 22 is
// mantissa x 10^e or mantissa / 10^e, computed with twice the precision of a double. If the correct rounding is still uncertain, or
// the number is longer, the caller lets Python convert the text. So every result is the nearest double.
#pragma once

#include <cmath>
#include <cstring>

#include "arrays.h"

namespace hushgraph {

using Byte = std::uint8_t;

// Returns eight bytes as an integer; the first byte is the lowest.
inline std::uint64_t load_word(const Byte* text) {
    std::uint64_t word;
    std::memcpy(&word, text, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

inline bool is_digit(Byte c) { return c >= '0' && c <= '9'; }

// Returns whether eight bytes are all digits: the upper half of each byte is 3, also after adding 6 to the byte.
inline bool are_digits(std::uint64_t word) {
    constexpr std::uint64_t upper = 0xF0F0F0F0F0F0F0F0, six = 0x0606060606060606;
    return ((word & upper) | (((word + six) & upper) >> 4)) == 0x3333333333333333;
}

// Returns the value of eight digits. Each line joins adjacent numbers: to numbers of two, four and eight digits.
inline std::uint64_t value_of_digits(std::uint64_t word) {
    word = (word & 0x0F0F0F0F0F0F0F0F) * (1 + (10 << 8)) >> 8;
    word = (word & 0x00FF00FF00FF00FF) * (1 + (100 << 16)) >> 16;
    return (word & 0x0000FFFF0000FFFF) * (1 + (std::uint64_t(10000) << 32)) >> 32;
}

// Reads the digits at `text` and appends them to `value`, modulo 2^64; returns the end of the digits.
inline const Byte* read_digits(const Byte* text, const Byte* end, std::uint64_t& value) {
    while (end - text >= 8 && are_digits(load_word(text))) {
        value = 100000000 * value + value_of_digits(load_word(text));
        text += 8;
    }
    for (; text < end && is_digit(*text); text++) value = 10 * value + (*text - '0');
    return text;
}

struct Integer {
    bool is_valid;
    Index value;
};

// Parses a text as an integer of up to 63 bits. `loose` allows leading zeros and a plus sign.
inline Integer parse_integer(const Byte* text, const Byte* end, bool loose) {
    const bool negative = text < end && *text == '-';
    if (negative || (loose && text < end && *text == '+')) text++;
    const Index size = end - text;
    if (size == 0 || size > 19 || (!loose && *text == '0' && (size > 1 || negative))) return {false, 0};
    std::uint64_t value = 0;
    if (read_digits(text, end, value) != end || value >> 63) return {false, 0};
    return {true, negative ? -static_cast<Index>(value) : static_cast<Index>(value)};
}

enum class Rounding { sure, doubtful, no_number };  // doubtful: Python must convert the text

struct Decimal {
    double value;
    Rounding rounding;
};

// Returns a b - product without rounding error (Dekker's algorithm).
inline double product_error(double a, double b, double product) {
    constexpr double split = 134217729.0;  // 2^27 + 1
    double t = split * a;
    const double a_high = t - (t - a), a_low = a - a_high;
    t = split * b;
    const double b_high = t - (t - b), b_low = b - b_high;
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
}

// Returns mantissa x 10^power for a mantissa below 10^18; doubtful if the result may not be the nearest double.
inline Decimal scale_decimal(Index mantissa, Index power) {
    static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};  // all exact
    if (mantissa == 0) return {0.0, Rounding::sure};
    if (power > 22 || power < -22) return {0.0, Rounding::doubtful};
    const double high = static_cast<double>(mantissa), low = static_cast<double>(mantissa - static_cast<Index>(high));
    double first, second;
    if (power >= 0) {
        const double scale = powers[power];
        first = high * scale;
        second = product_error(high, scale, first) + low * scale;
    } else {
        const double scale = powers[-power];
        first = high / scale;
        const double product = first * scale;
        second = ((high - product) - product_error(first, scale, product) + low) / scale;
    }
    const double doubt = first * 0x1p-98, value = first + second;
    const bool sure = first + (second + doubt) == value && first + (second - doubt) == value;
    return sure ? Decimal{value, Rounding::sure} : Decimal{0.0, Rounding::doubtful};
}

// Parses a text as a number >= 0: [+](digits[.[digits]] | .digits)([eE][+-]digits)?. The power has at most `longest_power` digits.
inline Decimal parse_decimal(const Byte* text, const Byte* end, Index longest_power = 19) {
    if (text < end && *text == '+') text++;
    const Byte* first = text;
    std::uint64_t mantissa = 0;
    text = read_digits(text, end, mantissa);
    Index digits = text - first, fraction = 0, power = 0;
    if (text < end && *text == '.') {
        const Byte* point = text;
        text = read_digits(point + 1, end, mantissa);
        fraction = text - point - 1;
        digits += fraction;
    }
    if (digits == 0) return {0.0, Rounding::no_number};
    if (digits > 18)  // leading zeros do not count
        for (; first < text && (*first == '0' || *first == '.'); first++) digits -= *first == '0';
    if (text < end) {
        if (*text != 'E' && *text != 'e') return {0.0, Rounding::no_number};
        text++;
        const bool has_sign = text < end && (*text == '+' || *text == '-');
        const Integer exponent = parse_integer(text, end, true);
        if (!exponent.is_valid || end - text - has_sign > longest_power) return {0.0, Rounding::no_number};
        power = exponent.value;
    }
    if (digits > 18) return {0.0, Rounding::doubtful};
    if (mantissa == 0) return {0.0, Rounding::sure};
    if (power > fraction + 22 || power < fraction - 22) return {0.0, Rounding::doubtful};
    return scale_decimal(static_cast<Index>(mantissa), power - fraction);
}

}  // namespace hushgraph
