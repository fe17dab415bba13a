"""Search the files of the repository for secrets: private keys, tokens of known services, passwords in addresses.

    python .ci/find_secrets.py [FILE ...]        the given files; default: all that git knows

A line that must look like a secret, in a test say, ends with "not a secret".
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

FORMS = {
    "private key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----",
    "access key of AWS": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "token of GitHub": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})\b",
    "token of PyPI": r"\bpypi-[A-Za-z0-9_-]{50,}",
    "token of Slack": r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    "key of Google": r"\bAIza[0-9A-Za-z_-]{35}\b",
    "JSON web token": r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    "password in an address": r"\b[a-z][a-z0-9+.-]*://[^\s/:@'\"{}<>]+:[^\s/:@'\"{}<>]+@[a-z0-9]",
    "assigned secret": r"(?i)\b(?:secret|password|passwd|api_?key|access_?token)\b\s*[:=]\s*['\"][A-Za-z0-9+/_=-]{16,}['\"]",
}


def secrets_in(text: str) -> list[tuple[int, str]]:
    """Return the number of each line that looks like a secret, and what it looks like.

    >>> secrets_in("a = 1\\nkey = 'AKIA" + "ABCDEFGHIJKLMNOP'")
    [(2, 'access key of AWS')]
    """
    lines = enumerate(text.splitlines(), start=1)
    return [
        (number, name)
        for number, line in lines
        for name, form in FORMS.items()
        if re.search(form, line) and not line.endswith("not a secret")
    ]


def main(files: list[str]) -> int:
    """Print what looks like a secret, without the secret; return 1 if there is any."""
    if not files:
        files = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=True).stdout.split("\0")[:-1]
    found = []
    for file in files:
        path = Path(file)
        if path.is_file():
            found += [f"{file}:{number}: {name}" for number, name in secrets_in(path.read_text(encoding="utf-8", errors="replace"))]
    print("\n".join(found) or f"no secrets in {len(files):,} files")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
