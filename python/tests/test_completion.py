"""`ropewalk completion` and the manual must say what the parsers of the verbs have."""

import shutil
import subprocess

import pytest

from ropewalk import command, completion


def completed(line):
    """Returns what bash offers after the words of a line."""
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    script = completion.bash() + (
        f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _ropewalk\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=30)
    assert not done.stderr
    return done.stdout.split()


def test_bash_completes_verbs_and_options(tmp_path, monkeypatch):
    assert completed("ropewalk re") == ["report"]
    assert set(completed("ropewalk ")) >= {verb.name for verb in command.VERBS} | {"--version"}
    assert completed("ropewalk report --co") == ["--compare"]
    assert completed("ropewalk bench --aga") == ["--against"]
    (tmp_path / "rows.json").touch()
    monkeypatch.chdir(tmp_path)
    assert completed("ropewalk report ro") == ["rows.json"]


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_every_option_of_every_verb_is_there(shell, capsys):
    assert command.main(["completion", shell]) == 0
    text = capsys.readouterr().out
    for name, (_, made) in completion.parsers().items():
        assert name in text
        for action in completion.options_of(made):
            for option in action.option_strings:
                assert option.lstrip("-") in text, (name, option)
    if shutil.which(shell):
        check = subprocess.run([shell, "-n"], input=text, capture_output=True, text=True)
        assert check.returncode == 0, check.stderr


def test_an_unknown_shell(capsys):
    assert command.main(["completion", "bahs"]) == 2
    assert "SHELL: 'bahs', expected bash, zsh, fish (did you mean bash?)" in capsys.readouterr().err


def test_the_manual_has_every_verb_and_no_stray_request():
    text = completion.manual()
    for verb in command.VERBS:
        assert f".SS ropewalk {verb.name}" in text
    known = (".TH", ".SH", ".SS", ".B", ".I", ".PP", ".nf", ".fi")
    for line in text.splitlines():
        assert not line.startswith("'")
        assert not line.startswith(".") or line.split()[0] in known, line


def test_what_man_would_take_for_its_own_is_escaped():
    text = completion._roff("a \\b --c\n.x\n'y")
    assert text == "a \\eb \\-\\-c\n\\&.x\n\\&'y"


def test_man_reads_the_manual(tmp_path):
    groff = shutil.which("groff") or pytest.skip("no groff here")
    page = tmp_path / "ropewalk.1"
    page.write_text(completion.manual())
    done = subprocess.run(
        [groff, "-man", "-Tascii", "-ww", str(page)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert not done.stderr
    assert "--compare A B" in done.stdout
