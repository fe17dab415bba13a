/* Numbers of the map as text: rounded values, values with their interval, and what a node is called. Functions without state. */

"use strict";

const HushMapText = (() => {
  /* The largest of ..., 1, 2, 5, 10, ... up to `most`. */
  const round125 = (most) => {
    const decade = 10 ** Math.floor(Math.log10(most));
    return +([5, 2, 1].find((f) => f * decade <= most * (1 + 1e-9)) * decade).toPrecision(1);
  };

  /* Rounded up to two digits, for the ends of a legend. */
  const roundUp = (v) => {
    const decade = 10 ** (Math.floor(Math.log10(v)) - 1);
    return +(Math.ceil(v / decade - 1e-6) * decade).toPrecision(2);
  };

  const formatted = (v, digits) => v.toLocaleString("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace(/^-(?=[0.]*$)/, "").replace("-", "\u2212"); // no "-0"
  const short = (v) => `${+v.toPrecision(3)}`.replace("-", "\u2212");

  /* The decimals of a value with this interval, and its ends rounded outwards; wide intervals have fewer digits. */
  function roundedEnds(lower, upper, digits) {
    const places = upper > lower ? Math.min(digits, Math.max(0, -Math.floor(Math.log10((upper - lower) / 10)))) : digits;
    const step = 10 ** -places;
    return [places, Math.floor(lower / step + 0.01) * step, Math.ceil(upper / step - 0.01) * step]; // 0.01: rounding of packed numbers
  }

  /* A value with its interval: "67 pickups, between 58 and 77". */
  function withInterval(value, lower, upper, digits, unit) {
    const [places, low, high] = roundedEnds(lower, upper, digits);
    return `${formatted(value, places)}${unit}, between ${formatted(low, places)} and ${formatted(high, places)}`;
  }

  /* A difference: "12 pickups more than at 07:00 (between 3 and 21 more)"; without an interval where its ends are NaN. */
  function differenceText(value, lower, upper, digits, unit, than) {
    const isKnown = !Number.isNaN(lower + upper);
    const [places, low, high] = isKnown ? roundedEnds(lower, upper, digits) : [digits, 0, 0];
    const size = (v) => formatted(Math.abs(v), places);
    const word = (v) => (v < 0 ? "less" : "more");
    const isZero = Math.abs(value) < 0.5 * 10 ** -places;
    const text = isZero ? `the same as ${than}` : `${size(value)}${unit} ${word(value)} than ${than}`;
    if (!isKnown) return text;
    if (low < 0 && high > 0) return `${text} (between ${size(low)} less and ${size(high)} more)`;
    const [near, far] = high <= 0 ? [high, low] : [low, high];
    return `${text} (between ${size(near)} and ${size(far)} ${word(far)})`;
  }

  /* The value of a layer at a node; `unit` follows the number. */
  function valueText({ values, lower, upper, than }, node, digits, unit) {
    const after = unit ? ` ${unit}` : "";
    if (Number.isNaN(values[node])) return "no value";
    if (than) return differenceText(values[node], lower?.[node] ?? NaN, upper?.[node] ?? NaN, digits, after, than);
    if (!lower || Number.isNaN(lower[node])) return `${formatted(values[node], digits)}${after}`;
    return withInterval(values[node], lower[node], upper[node], digits, after);
  }

  /* What a node is called: the streets that meet there, "W 33 St / 8 Av", or its label; empty if it has neither. */
  function nodeName({ names, labels }, node) {
    const texts = names ? names.codes.map((codes) => names.texts[codes[node]]).filter(Boolean) : [];
    return texts.length ? texts.join(" / ") : `${labels?.[node] ?? ""}`;
  }

  return { round125, roundUp, formatted, short, valueText, nodeName };
})();
