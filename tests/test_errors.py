"""Errors carry what they refer to as data: Python and the commands each use their own words, and nobody's values are reworded."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from typer.main import get_command
from typer.testing import CliRunner

import hushgraph
from hushgraph._deprecation import renamed
from hushgraph._errors import HushgraphError, InputError, InputTypeError, PathError, Reference, Sentence, argument
from hushgraph._validation import checked_count, checked_number, checked_real_array, choose, shown
from hushgraph.cli import app
from hushgraph.cli.failures import in_options, options_of, sentence_of
from hushgraph.files.graphs import read_graph
from hushgraph.files.signals import read_signal
from hushgraph.privacy.ledger.budget import Ledger
from hushgraph.privacy.ledger.chain import LedgerError

SOURCES = sorted(Path(hushgraph.__file__).parent.rglob("*.py"))
LOOKALIKES = [
    "sigma=2", "{sigma}", "{sigma=}", "{}", "{!r}", "{", "}", "max_nodes", "--sigma", "weight=False", "missing_ok=True", "Ledger.create(path)",
    "denoise()", "pass cupy.asnumpy(x)", "key=", "=", "crs='lonlat'", "%s", "\\1", "é",
]  # fmt: skip
texts = st.lists(st.sampled_from(LOOKALIKES) | st.text("ab_=-{}.()' ", max_size=4), min_size=1, max_size=4).map("".join)
TEMPLATE = "{sigma} and {max_nodes=}{} or {weight=False}; got {!r} in {}; see {Ledger.create(path, ...)}"


def commands(group=None, before=()):
    """All commands, in words."""
    for name, command in (get_command(app) if group is None else group).commands.items():
        inner = hasattr(command, "commands")
        yield from commands(command, (*before, name)) if inner else [" ".join((*before, name))]


COMMANDS = sorted(commands())


# ---- values stay as they are ------------------------------------------------------------------------------------------


@given(first=texts, second=texts, third=texts)
@example(first="sigma=2", second="{sigma}", third="data/sigma=2/streets.csv")
def test_values_are_never_taken_for_references(first, second, third):
    text = Sentence(TEMPLATE, first, second, third)
    assert text == f"sigma and max_nodes={first} or weight=False; got {second!r} in {third}; see Ledger.create(path, ...)"
    blank = " " * (f"{first} "[0] not in " ,;.:)")
    said = f"sigma and --max-nodes{blank}{first} or --unweighted; got {second!r} in {third}; see hushgraph budget create"
    assert in_options(text, "release") == said, "release has no --sigma"


@given(name=texts.filter(lambda text: text.strip(" .")))
def test_paths_are_printed_as_they_are(tmp_path_factory, name):
    path = tmp_path_factory.getbasetemp() / name / "streets.csv"
    with pytest.raises(FileNotFoundError) as missing:
        read_graph(path)
    assert str(path) in str(missing.value)
    for command in ("info", "denoise", "release", "explore", "plan-release"):
        assert str(path) in sentence_of(missing.value, command)[0]


@given(name=texts.filter(str.strip))
def test_names_of_columns_are_printed_as_they_are(tmp_path_factory, name):
    graph, path = hushgraph.datasets.path(3), tmp_path_factory.getbasetemp() / "values.csv"
    path.write_text("node,value\n0,1\n1,2\n2,3\n")
    with pytest.raises(ValueError, match="must have one column") as absent:
        read_signal(path, graph, columns=[name + "?"])
    assert f"one column {shown(name + '?')};" in str(absent.value)
    said = sentence_of(absent.value, "denoise")[0]
    assert said == str(absent.value).removesuffix("say columns= and label=") + "say --column and --label"


@given(value=texts)
def test_a_refused_value_is_printed_as_it_is(value):
    with pytest.raises(ValueError, match="method must be one of") as refused:
        choose("method", value + "?", ("auto",))
    got = str(refused.value).removeprefix("method ")
    assert sentence_of(refused.value, "denoise") == (f"--method {got}", 2)
    assert sentence_of(refused.value, "info") == (f"method {got}", 2), "it has no such option"


@pytest.mark.parametrize("command", ["info", "denoise", "release"])
def test_a_folder_named_like_an_argument(tmp_path, command):
    path = tmp_path / "sigma=2" / "max_nodes=3" / "streets.csv"
    files = {"info": [path], "denoise": [path, "signal.csv", "-o", tmp_path / "x.csv"], "release": [path, "trips.csv"]}[command]
    options = ["--epsilon", 1, "--ledger", tmp_path / "b.db", "-o", tmp_path / "out"] if command == "release" else []
    if command == "release":
        hushgraph.privacy.Ledger.create(
            tmp_path / "b.db", dataset="d", unit="person", adjacency="add-remove", epsilon=2, delta=1e-6
        )
        options += ["--public-graph", "--max-nodes", 1, "--max-per-node", 1]
    done = CliRunner().invoke(app, [str(word) for word in (command, *files, *options)])
    assert done.exit_code == 2
    assert f"the graph {path} does not exist" in done.output


def spoken(*words) -> tuple[int, str]:
    """Exit code and output of a command."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, done.output


NAMES = {"unit": "person", "adjacency": "add-remove", "epsilon": 2, "delta": 1e-6}
BOUNDED = ("--unit", "person", "--max-nodes", 1, "--max-per-node", 1)


@pytest.mark.parametrize("command", ["release", "check", "verify", "budget show"])
def test_ledgers_and_events_named_like_arguments(tmp_path, command):
    place = tmp_path / "sigma=2" / "{max_nodes=3}" / "Ledger.create(path, ...)"
    place.mkdir(parents=True)
    streets, budget, lost = place / "streets.csv", place / "replaces=.db", place / "key=.db"
    streets.write_text("source,target\n0,1\n1,2\n")
    (place / "trips.csv").write_text("person,unit=,node\np1,a,0\n")
    Ledger.create(budget, dataset="dataset={unit=}", **NAMES)
    words = {
        "release": ("release", streets, place / "trips.csv", *BOUNDED, "--epsilon", 1, "--public-graph", "-o", place / "out"),
        "check": ("check", streets, place / "trips.csv", *BOUNDED),
        "verify": ("verify", place, streets),
        "budget show": ("budget", "show"),
    }[command]
    if command != "check":
        code, said = spoken(*words, *([lost] if command == "budget show" else ["--ledger", lost]))
        assert (code, f"there is no ledger {lost}; check the path, or make one with hushgraph budget create" in said) == (4, True)
    if command in ("release", "check"):
        more = () if command == "check" else ("--ledger", budget, "--dataset", "dataset={unit=}")
        code, said = spoken(*words, *more, "--node", "{node=}")
        assert (code, "the events have no column '{node=}' among their 3 columns" in said) == (2, True)
        (place / "trips.csv").unlink()
        assert spoken(*words, *more, "--node", "node")[0] == 2
    if command == "release":
        code, said = spoken(*words, "--ledger", budget, "--dataset", "unit=")
        assert "the ledger replaces=.db is for --dataset 'dataset={unit=}'; got 'unit='; open" in said


def test_a_replaced_ledger_is_told_in_the_words_of_commands(tmp_path):
    first = Ledger.create(tmp_path / "unit=.db", dataset="replaces={unit=}", **NAMES)
    first.charge(epsilon=1, delta=1e-6, sensitivity_squared=1, sigma=10)
    with pytest.raises(LedgerError) as second:
        Ledger.create(tmp_path / "b.db", dataset="replaces={unit=}", **NAMES)
    said = "for dataset='replaces={unit=}', unit='person', adjacency='add-remove': a second ledger"
    assert said in str(second.value)
    assert f"pass replaces={first.identity!r}, which" in str(second.value)
    told, code = sentence_of(second.value, "budget create")
    assert code == 4
    assert "for --dataset 'replaces={unit=}', --unit 'person', --adjacency 'add-remove': a second ledger" in told
    assert "hushgraph budget renew starts a new period" in told
    assert f"pass --replaces {first.identity!r}, which" in told
    Ledger.create(tmp_path / "b.db", dataset="other", **NAMES)
    (tmp_path / "b.db").replace(tmp_path / "unit=.db")
    with pytest.raises(LedgerError, match=rf"say so once with Ledger\.open\(path, replaces='{first.identity}'\)$") as replaced:
        Ledger.open(tmp_path / "unit=.db")
    told, _ = sentence_of(replaced.value, "release")
    assert told.startswith("the ledger unit=.db was replaced")
    assert told.endswith(f"say so once with hushgraph budget show --replaces {first.identity!r}")


def test_a_weak_guarantee_is_asked_for_by_its_option(tmp_path):
    code, said = spoken(
        "budget", "create", tmp_path / "b.db", "--dataset", "d", "--unit", "person", "--adjacency", "add-remove", "--epsilon", 50
    )
    assert (code, "or say --weak-guarantee if that is what you want" in said) == (2, True)


# ---- what is referred to exists ---------------------------------------------------------------------------------------


def sentences_in(source: str):
    """(line, template, number of values) of each Sentence that a source makes; the template is None where it is not written there."""
    tree = ast.parse(source)
    shared = {name: value for _, name, value in assigned_in(tree)}
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Module)]:
        local = list(assigned_in(function))
        for node in _own(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Sentence":
                first = node.args[0]
                if isinstance(first, ast.Name):  # the latest assignment before, or that of the module
                    before = [value for line, name, value in local if name == first.id and line < node.lineno]
                    first = before[-1] if before else shared.get(first.id)
                known = isinstance(first, ast.Constant) and isinstance(first.value, str)
                starred = any(isinstance(value, ast.Starred) for value in node.args)
                yield node.lineno, first.value if known and not starred and not node.keywords else None, len(node.args) - 1


def assigned_in(function):
    for node in _own(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.lineno, node.targets[0].id, node.value


def _own(function):
    """The nodes of a function in their order, without those of functions in it."""
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            yield node
        if not isinstance(node, ast.FunctionDef):
            yield from _own(node)


def faults_in(source: str):
    for line, template, values in sentences_in(source):
        if template is None:
            yield line, "the template must be a literal beside it"
            continue
        fields = re.findall(r"\{(.*?)\}", template)
        references = [Reference(field) for field in fields if field[:1] not in ("", ":", "!")]
        if len(fields) - len(references) != values or re.sub(r"\{.*?\}", "", template).strip("{}") != re.sub(
            r"\{.*?\}", "", template
        ):
            yield line, f"{len(fields) - len(references)} places for {values} values"
        for reference in references:
            if all(in_options(Sentence.of((reference,)), command) == reference for command in COMMANDS):
                yield line, f"no command has anything for {reference}"


def test_every_sentence_is_well_formed_and_refers_to_what_some_command_has():
    found = {path.name: list(faults_in(path.read_text())) for path in SOURCES if path.name != "_errors.py"}
    assert not {name: faults for name, faults in found.items() if faults}
    assert sum(len(list(sentences_in(path.read_text()))) for path in SOURCES) > 50, "they are found at all"


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("Sentence(f'{name} is wrong')", "literal"),
        ("def f():\n    msg = 'a' + b\n    raise InputError(Sentence(msg))", "literal"),
        ("Sentence('{} and {}', 1)", "2 places for 1 values"),
        ("Sentence('{sigma', 1)", "0 places for 1 values"),
        ("Sentence('say {colour=}')", "no command has anything for colour="),
        ("Sentence('call {dance()}')", "no command has anything for dance()"),
    ],
)
def test_faults_of_sentences_are_found(source, fault):
    assert [words for _, words in faults_in(source) if fault in words]


@functools.cache
def every_reference() -> tuple[str, ...]:
    found = []
    for path in SOURCES:
        for _, template, _ in sentences_in(path.read_text()):
            fields = re.findall(r"\{(.*?)\}", template or "")
            found.extend(field for field in fields if field[:1] not in ("", ":", "!"))
    return tuple(found)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_names_only_options_that_exist(command):
    for text in sorted({*every_reference(), "pass cupy.asnumpy(noisy)"}):
        words = in_options(Sentence.of((Reference(text),)), command)
        there = command
        if words != text and words.startswith("hushgraph "):
            there = max((name for name in COMMANDS if words.removeprefix("hushgraph ").startswith(name)), key=len)
        if words == "leave --device gpu out":
            there = "denoise"
        options = re.findall(r"--[a-z-]+", words) if words != text else []
        assert options_of(there).issuperset(options), (text, words)


def test_terminals_are_opened_by_the_names_of_commands():
    """Else nobody could tell which options they have."""
    opened = {name for path in SOURCES for name in re.findall(r'open_terminal\("([^"]*)"', path.read_text())}
    assert opened == set(COMMANDS)


# ---- the errors themselves --------------------------------------------------------------------------------------------


def test_errors_travel_with_what_they_refer_to():
    error = pickle.loads(pickle.dumps(InputError(Sentence("give {max_nodes=}; got {}", "{x=}"))))
    assert str(error) == "give max_nodes=; got {x=}"
    assert sentence_of(error, "release") == ("give --max-nodes; got {x=}", 2)


def test_an_error_about_an_argument_carries_its_parts():
    hint = Sentence("leave {max_per_node=} out")
    error = InputError.about(argument="max_nodes", expected="an integer", got=2.5, hint=hint)
    assert str(error) == "max_nodes must be an integer; got 2.5; leave max_per_node= out"
    assert (error.argument, error.expected, error.got, error.hint) == ("max_nodes", "an integer", "2.5", hint)
    copied = pickle.loads(pickle.dumps(error))
    assert sentence_of(copied, "release") == ("--max-nodes must be an integer; got 2.5; leave --max-per-node out", 2)
    assert (copied.argument, copied.got) == ("max_nodes", "2.5")


def test_an_error_about_no_argument_has_no_parts():
    error = InputError("adjacency is not symmetric")
    assert (error.argument, error.expected, error.got, error.hint) == (None, None, None, None)


@pytest.mark.parametrize(
    ("call", "kind", "parts"),
    [
        (lambda: choose("law", "cauchy", ("gaussian",)), InputError, ("law", "one of 'gaussian'", "'cauchy'")),
        (lambda: checked_count("n_probes", 0, 1), InputError, ("n_probes", "an integer of at least 1", "0")),
        (lambda: checked_number("base", "2", "above 1", above=1), InputError, ("base", "above 1", "'2'")),
        (lambda: checked_real_array("noisy", ["a"]), InputTypeError, ("noisy", "real numbers", "dtype <U1")),
        (
            lambda: hushgraph.Graph.from_image([1] * 9),
            InputError,
            ("shape", "(rows, columns), both at least 1", "list of length 9"),
        ),
    ],
)
def test_checks_say_which_argument_is_wrong(call, kind, parts):
    with pytest.raises(kind) as wrong:
        call()
    assert (wrong.value.argument, wrong.value.expected, wrong.value.got) == parts


def test_a_renamed_argument_keeps_its_old_name_for_a_while():
    @renamed(removed_in="0.3", old="new")
    def double(*, new: int = 1) -> int:
        """Return twice the number."""
        return 2 * new

    assert double(new=3) == 6
    assert str(inspect.signature(double)) == "(*, new: 'int' = 1) -> 'int'"
    with pytest.warns(DeprecationWarning, match="old= of double is called new= now") as warned:
        assert double(old=4) == 8
    assert warned[0].filename == __file__
    with pytest.raises(InputTypeError, match="takes new= or its old name old=, not both"):
        double(old=1, new=1)


def test_errors_of_the_system_keep_their_number():
    error = PathError(98, Sentence("port {} is taken; leave {port=} out", 80))
    assert (error.errno, sentence_of(error, "explore")[0]) == (98, "port 80 is taken; leave --port out")


def test_sentences_within_sentences_keep_their_references():
    text = Sentence("{}: {}, {}", "a{b}", Sentence("say {label=}{!r}", "c"), argument("sigma"))
    assert (text, in_options(text, "denoise")) == ("a{b}: say label='c', sigma", "a{b}: say --label 'c', --sigma")
    assert not isinstance(argument("edge attribute 'x'"), Reference)


def test_every_own_error_is_also_one_that_callers_know():
    def below(kind):
        return {kind}.union(*map(below, kind.__subclasses__()))

    known = (ValueError, TypeError, RuntimeError, ArithmeticError, ImportError, OSError)
    assert all(issubclass(kind, known) for kind in below(HushgraphError) - {HushgraphError})


def test_sentences_are_not_put_into_f_strings():
    """There they would lose what they refer to."""
    trees = {path.name: ast.parse(path.read_text()) for path in SOURCES}
    names = {
        target.id
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") == "Sentence"
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.isupper()
    }
    assert "RESTORE_ADVICE" in names
    within = [
        (file, part.value.id)
        for file, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
        if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name) and part.value.id in names
    ]
    assert not within


def builtin_errors_in(source: str):
    """(line, class) of each error of Python's own that a source makes with a text."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and (node.args or node.keywords):
            kind = getattr(builtins, node.func.id, None)
            if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, Warning):
                yield node.lineno, node.func.id


def test_no_error_of_pythons_own_is_given_a_text():
    """Commands would not show it: they cannot know that it quotes no data."""
    found = [(path.name, kind) for path in SOURCES for _, kind in builtin_errors_in(path.read_text())]
    assert found == []


@pytest.mark.parametrize(
    "source",
    ["raise ValueError('a')", "def f():\n    return OSError(2, 'a')", "raise KeyError(name) from None", "error = TypeError(msg)"],
)
def test_errors_of_pythons_own_are_found(source):
    assert len(list(builtin_errors_in(source))) == 1
    assert not list(builtin_errors_in("raise ValueError\nraise InputError('a')\nwarn(UserWarning('a'))"))


# ---- the commonest mistakes -------------------------------------------------------------------------------------------

LINE = hushgraph.datasets.path(4)


@pytest.mark.parametrize(
    ("call", "kind", "argument", "hint"),
    [
        (lambda: hushgraph.denoise(LINE, np.ones(3), sigma=1.0), InputError, "signal", None),
        (lambda: hushgraph.denoise(LINE, np.ones((3, 4)), sigma=1.0), InputError, "signal", "pass Y.T if signals are rows"),
        (lambda: hushgraph.denoise(LINE, [1, np.nan, 1, 1], sigma=1.0), InputError, "signal", "missing='drop'"),
        (lambda: hushgraph.denoise(LINE, {0: 1.0, 1: 2.0}, sigma=1.0), InputError, "signal", "plain array in node order"),
        (lambda: hushgraph.denoise(LINE, np.ones(4), sigma=-1.0), InputError, "sigma", None),
        (lambda: hushgraph.denoise(LINE, np.ones(4), sigma=1e-80), InputError, "sigma", "rescale the signal and sigma"),
        (lambda: hushgraph.denoise(LINE, np.ones(4), sigma=1.0, seed=-1), InputError, "seed", None),
        (lambda: hushgraph.denoise(LINE, np.ones(4), sigma=1.0, method="best"), InputError, "method", None),
        (lambda: hushgraph.denoise(LINE, np.ones(4), sigma=1.0, progress=5), InputTypeError, "progress", None),
        (lambda: hushgraph.denoise("graph", np.ones(4), sigma=1.0), InputTypeError, "graph", "build one with Graph.from_edges"),
        (lambda: hushgraph.analyze(hushgraph.chebyshev_frame(LINE), np.ones(3)), InputError, "signal", None),
        (lambda: hushgraph.snr([1.0, np.nan], [1.0, 1.0]), InputError, "truth", "compare only known nodes"),
        (lambda: hushgraph.baselines.graph_tv(LINE, [1, np.nan, 1, 1], sigma=1.0), InputError, "signal", "clean them"),
    ],
)
def test_the_commonest_mistakes_name_their_argument(call, kind, argument, hint):
    with pytest.raises(kind) as wrong:
        call()
    assert (wrong.value.argument, wrong.value.expected is not None, wrong.value.got is not None) == (argument, True, True)
    assert wrong.value.got in str(wrong.value)
    assert wrong.value.hint is None if hint is None else hint in wrong.value.hint
    assert str(wrong.value).endswith(wrong.value.hint or "")


EVENTS = {"person": ["a"], "node": [0]}


@pytest.mark.parametrize("function", [hushgraph.privacy.count_events, hushgraph.privacy.check_events])
def test_the_progress_of_events_is_a_function(function):
    with pytest.raises(
        InputTypeError, match="progress must be True, for a bar, or a function of the number of rows done; got 5"
    ) as wrong:
        function(LINE, EVENTS, unit="person", adjacency="add-remove", max_nodes=1, max_per_node=1, progress=5)
    assert wrong.value.argument == "progress"


def test_numbers_in_a_container_say_what_to_pass_instead():
    noisy = hushgraph.Noisy(np.ones(4), sigma=1.0, kind="measurement", graph_hash=LINE.hash)
    counts = hushgraph.privacy.declare_counts(LINE, [1, 2, 3, 4], unit="person", adjacency="add-remove", sensitivity=1)
    for values, hint in (
        (noisy, "pass its .values"),
        (counts, "pass what privacy.release() makes of them: exact counts are private"),
    ):
        with pytest.raises(InputTypeError, match="signal must be plain numbers") as wrong:
            LINE.align(values)
        assert (wrong.value.argument, wrong.value.hint) == ("signal", hint)
