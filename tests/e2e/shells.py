"""A shell on a terminal, as somebody who presses keys has it."""
import atexit
import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import tempfile
import termios
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]


def scripts():
    """The completions, where every user can read them."""
    directory = Path(tempfile.mkdtemp(prefix='fumehood-test-', dir='/var/tmp'))
    directory.chmod(0o755)
    atexit.register(shutil.rmtree, directory, True)
    copy = shutil.copytree(TOP / 'packaging/completions', directory / 'completions')
    for path in [copy, *copy.iterdir()]:
        path.chmod(0o755)
    return copy


SCRIPTS = scripts()


class Shell:
    """`keys('fumehood sh\\t')` gives what the terminal shows then. What was typed is thrown away before the next keys."""

    PROMPT = 'now> '

    def __init__(self, hood, words, setup, env=None):
        self.main, other = pty.openpty()
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack('HHHH', 500, 200, 0, 0))
        path = f'{hood.binary.parent}:{hood.env["PATH"]}'
        self.process = subprocess.Popen(
            words, stdin=other, stdout=other, stderr=other, cwd=hood.dir, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**hood.env, 'PATH': path, 'TERM': 'dumb', 'INPUTRC': '/dev/null', **(env or {})}, **hood.who.popen_arguments())
        os.close(other)
        hood.processes.append(self.process)
        self.shown = ''
        os.write(self.main, (' ' + '; '.join(setup) + "; PS1='now''> '\n").encode())
        self.until(self.PROMPT)

    def until(self, text, seconds=30):
        end = time.monotonic() + seconds
        while text not in re.sub('.\x08', '', self.shown):  # a blank is taken back, and put there again
            ready, _, _ = select.select([self.main], [], [], max(0, end - time.monotonic()))
            assert ready, f'{text!r} did not come: {self.shown!r}'
            self.shown += os.read(self.main, 65536).decode(errors='replace')

    def keys(self, text, expected):
        self.shown = ''
        os.write(self.main, text.encode())
        self.until(expected)
        shown = self.shown
        os.write(self.main, b'\x15')  # the line is taken away
        return shown

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.main)


def ask(hood, words, text, env=None):
    """What a shell says that reads text as its script."""
    path = f'{hood.binary.parent}:{hood.env["PATH"]}'
    done = subprocess.run(words, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=hood.dir, timeout=300,
                          env={**hood.env, 'PATH': path, **(env or {})}, **hood.who.popen_arguments())
    assert done.returncode == 0, done.stderr
    return done.stdout


def quoted(word):
    return "'" + word.replace("'", "'\\''") + "'"


class Bash:
    """Each line is a list of words, the last one at the cursor; the answer is what each could become."""

    name = 'bash'

    def complete(self, hood, lines):
        script = ['source /usr/share/bash-completion/bash_completion', f'source {SCRIPTS}/fumehood.bash', 'compopt() { :; }',
                  'try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMPREPLY=()',
                  '_fumehood; printf "%s\\n" "${COMPREPLY[@]}"; echo ====; }']
        script += ['try fumehood ' + ' '.join(quoted(word) for word in line) for line in lines]
        return answers(ask(hood, ['bash', '--norc', '--noprofile'], '\n'.join(script) + '\n'))


class Fish:
    name = 'fish'

    def complete(self, hood, lines):
        script = [f'source {SCRIPTS}/fumehood.fish']
        for line in lines:
            words = ' '.join(['fumehood', *(word if word.replace('-', '').replace('=', '').isalnum() or not word else quoted(word)
                                            for word in line)])
            script += ['complete -C "' + words.replace('\\', '\\\\').replace('"', '\\"').replace('$', '\\$') + '"', 'echo ====']
        env = {'XDG_CONFIG_HOME': str(hood.home / 'fish'), 'XDG_DATA_HOME': hood.env['XDG_DATA_HOME']}
        found = answers(ask(hood, ['fish', '--no-config', '--private'], '\n'.join(script) + '\n', env))
        return [[word.split('\t')[0] for word in words] for words in found]


class Zsh:
    """Nothing but its line editor completes: what is offered there is written down on the way."""

    name = 'zsh'

    def complete(self, hood, lines):
        out = hood.dir / 'zsh-said'
        hood.write('zsh-said', '')
        shell = Shell(hood, ['zsh', '-f', '-i'], [
            'unsetopt zle_bracketed_paste', 'LISTMAX=100000', f'fpath=({SCRIPTS} $fpath)', 'autoload -U compinit', 'compinit -u -D',
            'compadd() { local -a hits; builtin compadd -O hits "$@"; print -rl -- $hits >> ' + str(out) +
            '; builtin compadd "$@" }', "said() { print -r -- '====' >> " + str(out) + '; zle kill-buffer; print -n -- "<said>" }',
            'zle -N said', "bindkey -e '^G' said"])
        try:
            for line in lines:
                shell.shown = ''
                os.write(shell.main, (' '.join(['fumehood', *(quoted(word) if set(word) & set(' $"\\') else word
                                                             for word in line)]) + '\t\x07').encode())
                shell.until('<said>')
        finally:
            shell.close()
        return answers(out.read_text())


def answers(text):
    return [[line for line in part.split('\n') if line] for part in text.split('====\n')[:-1]]


SHELLS = [Bash(), Zsh(), Fish()]
