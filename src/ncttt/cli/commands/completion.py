"""`ncttt completion`: a script that completes commands, options and their choices in a shell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from jsonargparse import ArgumentParser

Words = dict[str, list[str]]  # what may follow: after "data get", or after the option "data corrupt --constants"


def completion(shell: Literal["bash", "zsh", "fish"]) -> None:
    """Print a script that completes commands and options.

    Args:
        shell: bash, zsh or fish.
    """
    from ncttt.cli import command_parser

    print(SCRIPTS[shell](words(command_parser())), end="")


def words(parser: ArgumentParser) -> Words:
    """Every place of the command line with the words that may stand there."""
    from ncttt.cli.actions import choices, commands_of, metavar, options_of, spelling, walk

    found: Words = {}
    for path, below in walk(parser):
        options = options_of(below)
        common = ["--help", "--debug", *(["--config", "--print-config"] if options else [])]
        found[" ".join(path)] = [*commands_of(below), *map(spelling, options), *common]
        for action in below._actions:
            if choices(action) and metavar(action):  # not a flag, which stands alone
                place = spelling(action) if action.option_strings else "-"
                found[" ".join((*path, place))] = list(choices(action))
    found[""] += ["--version"]
    return found


def bash(found: Words) -> str:
    """The script for bash: the words of the longest command before the cursor, files elsewhere."""
    cases = "\n".join(f"    '{place}') found='{' '.join(after)}' ;;" for place, after in found.items())
    names = "|".join(sorted({place for place in found if place and "-" not in place}))
    return BASH.replace("@CASES@", cases).replace("@COMMANDS@", names.replace(" ", r"\ "))


def zsh(found: Words) -> str:
    """The script for zsh, which runs that for bash."""
    return "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" + bash(found)


def fish(found: Words) -> str:
    """The script for fish: a rule for each place."""
    lines = [FISH]
    for place, after in found.items():
        command, _, option = place.partition("-")
        condition = f"__ncttt_at {command.strip()}".strip()
        listed = " ".join(after)
        if option.startswith("-"):
            lines.append(f"complete -c ncttt -n '{condition}' -l {option[1:]} -x -a '{listed}'")
        elif not place.endswith("-"):
            commands = " ".join(word for word in after if word[0] != "-")
            lines += [f"complete -c ncttt -n '{condition}' -f -a '{commands}'"] if commands else []
            lines += [f"complete -c ncttt -n '{condition}' -l {w[2:]}" for w in after if w[0] == "-"]
        else:
            lines.append(f"complete -c ncttt -n '{condition}' -f -a '{listed}'")
    return "\n".join(lines) + "\n"


BASH = r"""# Completion of ncttt.
_ncttt_words() {
  local found=
  case "$1" in
@CASES@
  esac
  echo "$found"
}
_ncttt() {
  [[ -n $ZSH_VERSION ]] && setopt local_options ksh_arrays
  local word place= current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "${place:+$place }$word" in @COMMANDS@) place="${place:+$place }$word" ;; esac
  done
  local after="$(_ncttt_words "${place:+$place }$previous")"
  [[ $previous == --* && -n $after ]] || after="$(_ncttt_words "$place") $(_ncttt_words "$place -")"
  COMPREPLY=($(compgen -W "$after" -- "$current"))
}
complete -o default -F _ncttt ncttt
"""

FISH = """# Completion of ncttt.
function __ncttt_at
    set -l words (commandline -opc)
    set -l given
    for word in $words[2..-1]
        string match -q -- '-*' $word; and break
        set given $given $word
    end
    set -l size (count $argv)
    test $size -eq 0; and test (count $given) -eq 0; and return 0
    test $size -gt 0; and test (count $given) -ge $size; and test "$given[1..$size]" = "$argv"
end
"""

SCRIPTS: dict[str, Callable[[Words], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
