"""The verb completion: a script that completes verbs, options and files in a shell."""

from __future__ import annotations

import argparse

SHELLS = ("bash", "zsh", "fish")

more_completion = """

  bash:  eval "$(hockeystick completion bash)"      in ~/.bashrc
  zsh:   eval "$(hockeystick completion zsh)"       in ~/.zshrc, after compinit
  fish:  hockeystick completion fish | source       in ~/.config/fish/config.fish"""

_BASH = """_hockeystick() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}"
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{verbs} --help --version" -- "$cur"))
        return
    fi
    case "$prev" in
{choices}
    esac
    if [[ "$cur" == -* ]]; then
        case "${{COMP_WORDS[1]}}" in
{options}
        esac
    else
        case "${{COMP_WORDS[1]}}:$COMP_CWORD" in
{places}
        esac
        COMPREPLY=($(compgen -f -- "$cur"))
    fi
}}
complete -o filenames -F _hockeystick hockeystick"""


def arguments_completion(parser) -> None:
    parser.add_argument("shell", choices=SHELLS)


def answer_completion(args) -> str:
    from . import VERBS, parser

    flags: dict[str, list[argparse.Action]] = {name: list(parser(name)._actions) for name in VERBS}
    choices = {
        option: [str(choice) for choice in action.choices]
        for actions in flags.values()
        for action in actions
        for option in action.option_strings
        if action.choices
    } | _choices()
    if args.shell == "fish":
        return "\n".join(_fish(flags, choices))
    verbs = " ".join(VERBS)
    text = _BASH.format(
        verbs=verbs,
        choices="\n".join(
            f'        {option}) COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$cur")); return;;'
            for option, words in choices.items()
        ),
        places="\n".join(
            f'            {name}:{i}) COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$cur")); return;;'
            for name, actions in flags.items()
            for i, words in _places(actions)
        ),
        options="\n".join(
            f'            {name}) COMPREPLY=($(compgen -W "{_options(actions)}" -- "$cur"));;'
            for name, actions in flags.items()
        ),
    )
    return text if args.shell == "bash" else f"autoload -U +X bashcompinit && bashcompinit\n{text}"


def _places(actions: list[argparse.Action]) -> list[tuple[int, list[str]]]:
    """The words that take one of a few values, by their place on the command line."""
    words = [action for action in actions if not action.option_strings]
    return [(2 + i, [str(choice) for choice in action.choices]) for i, action in enumerate(words) if action.choices]


def _options(actions: list[argparse.Action]) -> str:
    return " ".join(option for action in actions for option in action.option_strings)


def _choices() -> dict[str, list[str]]:
    from ..routes.table import ROUTES
    from ..what.pair import ADJACENCIES, DIRECTIONS

    return {"--adjacency": [*ADJACENCIES], "--direction": [*DIRECTIONS], "--route": [*ROUTES]}


def _fish(flags: dict[str, list[argparse.Action]], choices: dict[str, list[str]]):
    from . import VERBS

    for name, verb in VERBS.items():
        yield f"complete -c hockeystick -n __fish_use_subcommand -a {name} -d '{verb.summary}'"
        for _, words in _places(flags[name]):
            yield f"complete -c hockeystick -n '__fish_seen_subcommand_from {name}' -a '{' '.join(words)}'"
        for action in flags[name]:
            for option in action.option_strings:
                if option.startswith("--"):
                    given = f" -x -a '{' '.join(choices[option])}'" if option in choices else ""
                    yield f"complete -c hockeystick -n '__fish_seen_subcommand_from {name}' -l {option[2:]}{given}"
