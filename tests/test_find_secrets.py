"""`.ci/find_secrets.py` finds secrets of usual forms in files of usual kinds, and nothing in usual code. No line here has one: they are put together."""

import runpy
from pathlib import Path

import pytest

NAMES = runpy.run_path(str(Path(__file__).parents[1] / ".ci" / "find_secrets.py"))
MAIN, SECRETS_IN = NAMES["main"], NAMES["secrets_in"]
KEY = "Ab3" * 12  # no key of anything
LETTERS = "correct" + "horse" + "battery"
SECRETS = {  # name of a file: a line in it
    "one.py": f"client_secret = '{KEY}'",
    "two.py": f'AWS_SECRET_ACCESS_KEY = "{KEY}"',
    "keys.py": f'settings = {{"api_key": "{KEY}"}}',
    "environment.py": f'os.environ["API_KEY"] = "{KEY}"',
    "typed.py": f'password: str = "{LETTERS}"',
    "symbols.py": f'db_password = "{LETTERS[:9]}&3!"',
    "short.js": f'const apiKey = "{KEY[:12]}";',
    "keys.json": f'{{"api_key": "{KEY}"}}',
    "nested.json": f'"{{\\"api_key\\": \\"{KEY}\\"}}"',
    "profile.sh": f"export AWS_SECRET_ACCESS_KEY={KEY}",
    ".env": f"DB_PASSWORD={LETTERS}",
    "settings.ini": f"password = {LETTERS}!",
    "settings.yml": f"password: {LETTERS}",
    "compose.yml": f"      - DB_PASS={KEY[:12]}",
    "Dockerfile": f"ENV API_TOKEN={KEY}",
    "command.md": f"`tool --password={KEY[:9]} --verbose`",
    ".npmrc": f"//registry.example.org/:_authToken={KEY}",
    "rsa.pem": "-----BEGIN " + "RSA PRIVATE KEY-----",
    "pgp.asc": "-----BEGIN " + "PGP PRIVATE KEY BLOCK-----",
    "github.txt": f"ghp_{KEY}",
    "gitlab.txt": f"glpat-{KEY}",
    "npm.txt": f"npm_{KEY}",
    "hugging.txt": f"hf_{KEY}",
    "pypi.txt": f"pypi-{KEY}{KEY}",
    "aws.txt": "AKIA" + "ABCDEFGHIJKLMNOP",
    "google.txt": f"AIza{KEY[:35]}",
    "model.txt": f"sk-proj-{KEY}",
    "stripe.txt": f"sk_{'live'}_{KEY}",
    "azure.txt": f"AccountName=a;AccountKey={KEY}{KEY}==;EndpointSuffix=b",
    "sendgrid.txt": f"SG.{KEY[:22]}.{KEY}",
    "slack.txt": f"xoxb-{KEY}",
    "hook.txt": f"https://hooks.slack.com/services/T{KEY[:8]}/B{KEY[:8]}/{KEY}",
    "jwt.txt": f"eyJ{KEY}.eyJ{KEY}.{KEY}",
    "request.http": f"Authorization: Bearer {KEY}",
    "request.py": f'headers = {{"Authorization": "Basic {KEY}"}}',
    "address.py": f"https://user:{KEY}@example.org",
    "redis.py": f"redis://:{KEY}@cache:6379",
}


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_secrets_are_found(tmp_path, capsys, name, encoding):
    file = tmp_path / name
    file.write_text(f"a = 1\n{SECRETS[name]}\nb = 2\n", encoding=encoding)
    assert MAIN([str(file)]) == 1
    answer = capsys.readouterr().out
    assert f"{name}:2: " in answer
    assert KEY[:9] not in answer
    assert LETTERS not in answer


@pytest.mark.parametrize("name", SECRETS)
def test_a_line_can_deny_that_it_is_a_secret(tmp_path, name):
    file = tmp_path / name
    file.write_text(f"{SECRETS[name]}  # not a secret\n")
    assert MAIN([str(file)]) == 0
    file.write_text(f"{SECRETS[name]}\n# not a secret\n")
    assert MAIN([str(file)]) == 1


@pytest.mark.parametrize(
    "line",
    [
        "token = secrets.token_urlsafe(32)",
        "token = self.settings.token",
        "TOKEN_HEADER = 'x-hushgraph-token'",
        'password = ""',
        f"sha256 = '{KEY}'",
        'parser.add_argument("--password", help="the password of the server")',
        "compass = 'northwest'",
        'password = "<password>"',
    ],
)
def test_usual_code_is_no_secret(line):
    assert SECRETS_IN(line, is_program=True) == []


@pytest.mark.parametrize(
    "line",
    [
        "id-token: write",
        "token: ${{ secrets.GITHUB_TOKEN }}",
        'export API_KEY="$API_KEY"',
        "API_KEY=$API_KEY",
        "password: ********",
        "//registry.example.org/:_authToken=${NPM_TOKEN}",
        "https://user:$PASSWORD@example.org",
        f"sha256: {KEY}",
        "Write the token: it is shown once.",
        "password: <the one of the server>",
        "Basic authentication-of-users is not supported.",
    ],
)
def test_usual_settings_and_sentences_are_no_secret(line):
    assert SECRETS_IN(line) == []


def test_what_cannot_be_read_is_no_pass(tmp_path, capsys):
    assert MAIN([str(tmp_path / "gone.py")]) == 2
    assert "gone.py: expected a file that can be read" in capsys.readouterr().out
    assert MAIN([str(tmp_path)]) == 2


def test_a_search_of_nothing_is_no_pass(monkeypatch):
    monkeypatch.setitem(MAIN.__globals__, "files_of_git", list)
    assert MAIN([]) == 2
