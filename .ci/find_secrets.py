"""Search files for secrets: private keys, tokens of known services, passwords in addresses and in assignments.

    python .ci/find_secrets.py [FILE ...]        the given files; default: all of the working tree that git does not ignore, not their history

A line that must look like a secret, in a test say, ends with "not a secret". UTF-16 is read; packed files (zip, gz) are not unpacked, and an
assigned secret with fewer than eight characters or with spaces is not seen.
The status is 1 if a line looks like a secret, and 2 if a file could not be read.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

# All repeated parts have a limited length, so that a line of a million characters is searched quickly.
SECRET_NAME = (
    r"(?:secret|passw(?:or)?d|passphrase|p(?<![a-z]p)(?:wd|ass)(?![a-z])|token|credential"
    r"|(?:api|access|account|auth|encryption|private|shared|signing)[_-]?key)[\w-]{0,40}"
)
NAME_HINTS = ("secret", "pass", "pwd", "token", "credential", "key")
# Kind of secret: (hints, regular expression). A file without any of the hints, in lower case, is not searched for this kind, which is faster. If the
# expression has a group `value`, that part must not be a placeholder.
FORMS = {
    "private key": (
        ("private key", "putty-user-key", "age-secret-key"),
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-[0-9]|\bAGE-SECRET-KEY-1",
    ),
    "access key of AWS": (("akia", "asia"), r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "key of Azure": (("key=",), r"(?i)\b(?:Account|SharedAccess)Key=[A-Za-z0-9+/]{40,}"),
    "token of GitHub": (
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})\b",
    ),
    "token of PyPI": (("pypi-",), r"\bpypi-[A-Za-z0-9_-]{50,}"),
    "token of Slack": (("xox", "xapp-"), r"\b(?:xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,})"),
    "webhook": (
        ("hooks.slack", "/api/webhooks"),
        r"hooks\.slack\.com/[a-z]+/[A-Za-z0-9/]{20,}|discord(?:app)?\.com/api/webhooks/[0-9]+/[\w-]{20,}",
    ),
    "key of Google": (("aiza", "gocspx"), r"\b(?:AIza[0-9A-Za-z_-]{35}|GOCSPX-[0-9A-Za-z_-]{20,})"),
    "key of Stripe": (("k_live_", "k_test_", "whsec_"), r"\b(?:[rs]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}"),
    "key of SendGrid": (("sg.",), r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    "JSON web token": (("eyj",), r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    "password in an address": (
        ("://",),
        r"://[^\s/:@'\"{}<>]{0,200}:(?P<value>[^\s/:@'\"{}<>]{1,200})@[A-Za-z0-9\[]",
    ),
    "token of GitLab, npm or Hugging Face": (
        ("glpat-", "npm_", "hf_"),
        r"\b(?:glpat-[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{36}|hf_[A-Za-z0-9]{30,})",
    ),
    "key of a model service": (("sk-",), r"\bsk-(?=[A-Za-z_-]*[0-9])(?=[a-z0-9_-]*[A-Z])[A-Za-z0-9_-]{32,}"),
    "authorization": (
        ("bearer", "basic"),
        r"(?i)\b(?:bearer|basic)[ \t]+(?=[^\s'\"]{0,200}[0-9])(?P<value>[A-Za-z0-9._~+/=-]{16,})",
    ),
    "login of npm": (("_auth",), r"_auth(?:Token)?[ \t]*=[ \t]*(?P<value>[^\s'\"]{8,})"),
}
# The same for assignments, in a text that was turned to lower case.
ASSIGNMENTS = {
    # name = "value", "name": "value", settings["name"] = "value", name: str = "value", name => "value"
    "assigned secret": (
        NAME_HINTS,
        rf"{SECRET_NAME}\\?['\"]?\]?(?:[ \t]*:[ \t]*\w{{1,20}})?[ \t]*(?:[:=]|:=|=>)[ \t]*[bfru]?\\?['\"](?P<value>[^\s'\"]{{8,200}})['\"]",
    ),
    # name=value, name: value
    "secret in a setting": (NAME_HINTS, rf"(?m){SECRET_NAME}[ \t]*[:=][ \t]*(?P<value>[^\s'\"`|;,]{{8,200}})(?=[\s;,`|]|$)"),
}
# In files with these endings a value without quotes is an expression.
PROGRAMS = (".c", ".cc", ".cpp", ".css", ".cu", ".h", ".inc", ".js", ".mjs", ".py", ".pyi", ".ts")
# Values that are no secret: a variable, a template, a call, an address, the name of a secret, one repeated character.
PLACEHOLDER = re.compile(
    r"(?i)\$[\w{(]|%[\w(]|[<{\[&]|\*{3}|\.{2}|[\w.]+\(|https?://|[a-z_.-]*(?:secret|password|token|api_?key)[a-z_.-]*$"
    r"|your[_-]|example|change[_-]?me|(.)\1*$|(?:required|optional)$"
)


def is_secret(match: re.Match[str]) -> bool:
    """Return whether a match is a secret: no placeholder, and not on a line that ends with "not a secret"."""
    line_end = match.string.find("\n", match.end())
    rest = match.string[match.end() : len(match.string) if line_end < 0 else line_end]
    is_placeholder = "value" in match.re.groupindex and PLACEHOLDER.match(match["value"])
    return not is_placeholder and not rest.rstrip().endswith("not a secret")


def secrets_in(text: str, is_program: bool = False) -> list[tuple[int, str]]:
    """Return the number of each line that looks like a secret, and what it looks like.

    >>> secrets_in("a = 1\\nkey = 'AKIA" + "ABCDEFGHIJKLMNOP'")
    [(2, 'access key of AWS')]
    """
    lowered = text.lower()
    places = {
        (match.string.count("\n", 0, match.start()) + 1, kind)
        for forms, searched in ((FORMS, text), (ASSIGNMENTS, lowered))
        for kind, (hints, expression) in forms.items()
        if not (is_program and kind == "secret in a setting") and any(hint in lowered for hint in hints)
        for match in re.finditer(expression, searched)
        if is_secret(match)
    }
    return sorted(places)


def secrets_in_file(path: Path) -> list[tuple[int, str]]:
    """Return the lines of a file that look like a secret. From UTF-16 the zero bytes are removed, which leaves ASCII characters."""
    data = path.read_bytes()
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or 3 * data.count(0) > len(data):
        data = data.replace(b"\0", b"")
    return secrets_in(data.decode("utf-8", errors="replace"), path.suffix.lower() in PROGRAMS)


def files_of_git() -> list[str]:
    """Return all files of the working tree that git knows or would add."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split("\0")[:-1]
    return [file for file in dict.fromkeys(files) if Path(file).is_file()]  # without those that were deleted since they were added


def main(files: list[str]) -> int:
    """Print what looks like a secret, without the secret, and return the status."""
    found, unread, files = [], [], files or files_of_git()
    for file in files:
        try:
            found += [f"{file}:{number}: {name}" for number, name in secrets_in_file(Path(file))]
        except OSError as error:
            unread.append(f"{file}: expected a file that can be read; {error.strerror}; correct the name, or leave it out")
    print("\n".join(found + unread) or f"no secrets in {len(files):,} files")
    return 2 if unread or not files else int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
