"""A command that cannot be executed, or whose interpreter is not found: the reason says why, and what to do about it."""
import json
import os
import struct

import pytest


def elf(machine, interpreter=b''):
    """The head of a program for a machine, 62 being x86_64 and 183 aarch64, with the loader that it wants."""
    at = 64 + 56
    head = b'\x7fELF' + bytes([2, 1, 1]) + bytes(9) + struct.pack('<HHIQQQIHHHHHH', 2, machine, 1, 0x400000, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    part = struct.pack('<IIQQQQQQ', 3, 4, at, 0x400000 + at, 0, len(interpreter) + 1, len(interpreter) + 1, 1)
    return head + part + interpreter + b'\0'


OURS, FOREIGN = {'x86_64': (62, (183, 'aarch64')), 'aarch64': (183, (62, 'x86_64'))}[os.uname().machine]

# what lies there, its mode, the command, the exit status of run, words of the reason
FILES = {
    'not on PATH': (None, 0, ['no-such-program'], 127, ['it is not on PATH; install it on this host, or name it by its path']),
    'beside, not on PATH': ('echo\n', 0o755, ['fit'], 127, ['it is not on PATH; a file of that name lies in the working directory: say ./fit']),
    'not there': (None, 0, ['./absent.sh'], 127, ["'./absent.sh': No such file or directory: there is no such file in '"]),
    'not on this host': (None, 0, ['/usr/bin/no-such-program'], 127, ['there is no such file on this host']),
    'a directory': (None, 0, ['./site'], 127, ['it is a directory; name the program in it']),
    'a directory of the system': (None, 0, ['/usr/bin'], 126, ['Permission denied: it is a directory']),
    'no interpreter': ('#!/nonexistent/python\n', 0o755, ['./fit'], 127,
                       ["its interpreter '/nonexistent/python' is not there; correct its first line, or begin the command with another"]),
    'Windows line ends': ('#!/usr/bin/python3\r\nprint(1)\r\n', 0o755, ['./fit'], 127,
                          ["ends in a carriage return (Windows line ends), so that its interpreter is '/usr/bin/python3\\r'; convert it: sed -i 's/\\r$//' ./fit"]),
    'Windows line ends and env': ('#!/usr/bin/env python3\r\nprint(1)\r\n', 0o755, ['./fit'], 127,
                                  ["exit status 127; its first line ends in a carriage return (Windows line ends), so that its interpreter is 'python3\\r'"]),
    'Windows line ends for a shell': ('cd data\r\nif true; then\r\necho\r\nfi\r\n', 0o644, ['sh', 'fit'], None,
                                      ["; the lines of 'fit' end in a carriage return", "sed -i 's/\\r$//' fit"]),
    'an interpreter that env does not find': ('#!/usr/bin/env no-such-language\n', 0o755, ['./fit'], 127,
                                              ["exit status 127; its interpreter 'no-such-language' is not on PATH"]),
    'not executable': ('#!/usr/bin/env python3\nprint(1)\n', 0o644, ['./fit'], 126,
                       ['Permission denied: it is not executable; chmod +x it, or begin the command with what runs it: python3 ./fit']),
    'no first line': ('print(1)\n', 0o755, ['./fit'], 126,
                      ['Exec format error: its first line does not name an interpreter, as #!/bin/sh does; begin the command with what runs it: sh ./fit']),
    'a byte order mark': ('\ufeff#!/bin/sh\n', 0o755, ['./fit'], 126, ['a byte order mark stands before its first line; save it without']),
    'empty': ('', 0o755, ['./fit'], 126, ['it is empty']),
    'another machine': (elf(FOREIGN[0]), 0o755, ['./fit'], 126,
                        [f'it is a program for {FOREIGN[1]}, and this machine is {os.uname().machine}; build it for this one']),
    'another loader': (elf(OURS, b'/lib/ld-elsewhere.so.1'), 0o755, ['./fit'], 127, ["it needs the loader '/lib/ld-elsewhere.so.1', which is not here"]),
    'Windows': (b'MZ\x90\0' + bytes(100), 0o755, ['./fit'], 126, ['it is a program for Windows; build it for Linux']),
    'neither': (bytes(range(100)), 0o755, ['./fit'], 126, ['it is neither a program nor a script']),
}


@pytest.mark.parametrize('file', FILES)
def test_the_reason_says_what_is_wrong_with_the_file_and_what_to_do(hood, file):
    content, mode, command, status, words = FILES[file]
    if content is not None:
        hood.write('fit', content, mode)
    result = hood.run(command)
    found = result.json
    assert found['verdict'] == 'failed' and (status is None or result.status == status), result
    assert all(word in found['reason'] for word in words), found['reason']
    assert hood.succeed('show', found['id'], '--json').json['reason'] == found['reason']
    assert found['reason'] in hood.succeed('show', found['id']).out


def test_an_interpreter_that_only_the_caller_sees_is_named(hood):
    own = hood.write('bin/runner', '#!/bin/sh\n', 0o755)
    hood.write('fit', f'#!{own}\n', 0o755)
    reason = hood.run(['./fit']).json['reason']
    assert f"its interpreter '{own}' exists here but is not shown to the analysis; begin the command with it: {own} ./fit" in reason, reason


def test_a_script_that_is_not_staged_is_named_with_the_option(hood):
    hood.write('fit', '#!/bin/sh\n', 0o755)
    reason = hood.run(['./fit'], '--no-stage').json['reason']
    assert reason.endswith(': it exists here but is not shown to the analysis; add --input ./fit'), reason


def test_words_that_are_too_long_say_so(hood):
    hood.write('request.json', json.dumps({'id': hood.id(), 'command': ['true', 'x' * 200000]}))
    reason = hood.cli('run', '--json', '-f', 'request.json').json['reason']
    assert reason.endswith(': its words and its environment are too long together; pass them in a file'), reason


def test_what_another_step_left_in_its_place_is_not_followed_or_waited_for(hood):
    """A FIFO, a link to what only the caller reads, a directory without rights: a sentence, at once, that tells nothing of it."""
    secret = hood.write(hood.home / 'secret', '#!/very/secret\n', 0o700)
    id = hood.id()
    hood.succeed('workspace', 'create', id, '--for', '1h')
    assert hood.run(f'mkfifo -m 755 fifo; ln -s {secret} link; mkdir -m 0 locked', id=id).status == 0
    for name in ('./fifo', './link', './locked/x'):
        found = hood.run([name], id=id).json
        assert found['verdict'] == 'failed' and 'cannot execute' in found['reason'] and 'very' not in found['reason'], found
    hood.succeed('workspace', 'cleanup', id)


def test_a_submission_hears_nothing_of_what_lies_outside(hood):
    hood.write('fit', '#!/bin/sh\n', 0o755)
    id = hood.id()
    hood.succeed('submit', id, '--no-stage', '--', './fit')
    hood.succeed('worker', '--drain')
    found = hood.succeed('show', id, '--json').json
    assert found['reason'].endswith('No such file or directory: it is not among the files that came with it; add --input ./fit'), found
