"""What is written is what is there: options in the manual, words in the contract."""
import re
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]


def options_in(text):
    return set(re.findall(r'(?<![\w-])--[a-z][a-z-]+', text))


def test_every_option_of_run_is_in_the_manual_and_the_other_way_round(hood):
    manual = options_in((TOP / 'man/fumehood-run.1.scd').read_text())
    page = hood.succeed('help', 'run').out.splitlines()
    offered = options_in('\n'.join(line for line in page if not line.startswith('  fumehood')))  # examples aside
    assert offered - manual == set()
    for option in manual - offered:
        assert 'unknown option' not in hood.cli('run', hood.id(), option).err, option


def test_help_lists_every_option_that_the_formats_have(hood):
    rows = re.findall(r'^\| `\w+` \| `(--?[a-z-]+)` \|', (TOP / 'docs/FORMATS.md').read_text(), re.M)
    help = hood.succeed('help', 'run').out + hood.succeed('help', 'submit').out
    assert '--open-files' in rows and '-i' in rows and len(rows) > 30
    assert [option for option in rows if not re.search(rf'(?<![\w-]){option}(?![\w-])', help)] == []


def test_every_command_has_a_page_with_all_its_options(hood):
    overview = (TOP / 'man/fumehood.1.scd').read_text()
    listed = [found.group(1) for found in re.finditer(r'^  ([a-z-]+)  ', hood.succeed('help').out, re.M)]
    commands = hood.succeed('complete', 'table').json
    assert [command['name'] for command in commands] == listed and 'run' in listed and 'gc' in listed
    for command in commands:
        name = command['name']
        assert f'*fumehood-{name}*(1)' in overview, name
        page = (TOP / f'man/fumehood-{name}.1.scd').read_text()
        page += (TOP / 'man/fumehood-run.1.scd').read_text() if name == 'submit' else ''
        for option in command['options']:
            assert re.search(rf'^\*-.*\*{option["name"]}\*|^\*{option["name"]}\*', page, re.M), (name, option)


def test_help_has_a_commands_own_options_and_no_others(hood):
    for command in hood.succeed('complete', 'table').json:
        page = hood.succeed('help', command['name']).out
        offered = options_in('\n'.join(line for line in page.splitlines() if line.startswith('-')))  # not what it speaks of
        known = {option['name'] for option in command['options']}
        assert offered - known == set(), command['name']
        own = {option['name'] for option in command['options'] if not option['shared'] and not option['request']} - {'--follow'}
        assert [name for name in own if not re.search(rf'(?<![\w-]){name}(?![\w-])', page)] == [], command['name']


def test_the_walk_names_what_exists():
    text = (TOP / 'docs/ARCHITECTURE.md').read_text()
    hops = re.findall(r'`((?:src|include|bindings|docs|man|tests)/[\w./-]*?)(?::(\w+))?`', text)
    assert len([hop for hop in hops if hop[1]]) > 20, hops
    for path, function in hops:
        assert (TOP / path).exists(), path
        assert not function or re.search(rf'^(?:[a-z_].*[ *])?{function}\(', (TOP / path).read_text(), re.M), (path, function)


def test_a_name_that_is_no_literal_is_opened_only_where_a_reason_is_listed(tmp_path):
    def look(exceptions, *calls):
        (tmp_path / 'src/room').mkdir(parents=True, exist_ok=True)
        (tmp_path / 'scripts').mkdir(exist_ok=True)
        (tmp_path / 'scripts/opens.exceptions').write_text(exceptions)
        body = ''.join(f'\tfd = {call};\n' for call in calls)
        (tmp_path / 'src/room/file.c').write_text(f'/* openat(fd, comment, 0) */\nstatic int first(void)\n{{\n}}\n\nint '
                                                  f'way_open(int dir, const char *name)\n{{\n{body}}}\n')
        done = subprocess.run([TOP / 'scripts/opens', tmp_path], stdout=subprocess.PIPE, text=True)
        return done.returncode, done.stdout

    fine = 'openat(dir, "a(b", O_RDONLY)', 'openat(at(dir, 1), RECORD_NAME, O_RDONLY)', 'file_open_beneath(dir, name, O_RDONLY, 0)'
    assert look('', *fine) == (0, '')
    for call in ('openat(dir, name, O_RDONLY)', 'openat(dir,\n\t\tname, O_RDONLY)', 'openat(at(a, "x"), name, 0)',
                 'openat(dir, e->d_name, 0)', 'openat(dir, n ? "a" : name, 0)', 'syscall(SYS_openat, dir, name, 0)'):
        status, said = look('', *fine, call)
        assert status == 1 and said.startswith('src/room/file.c:11: way_open() opens '), said
        assert look('src/room/file.c:way_open read just now\n', *fine, call) == (0, '')
        assert look('src/room/file.c:first read just now\n', *fine, call)[0] == 1
        assert 'no reason' in look('src/room/file.c:way_open\n', *fine, call)[1]
    assert 'is not needed' in look('src/room/file.c:way_open read just now\n', *fine)[1]
    assert subprocess.run([TOP / 'scripts/opens'], stdout=subprocess.PIPE, text=True).stdout == ''


def test_every_threat_has_its_answer_and_every_answer_its_test():
    """THREATS.md: each who against each whom, no empty cell, and the tests that are named are there."""
    section = (TOP / 'docs/THREATS.md').read_text().split('## Who against whom', 1)[1].split('\n## ', 1)[0]
    rows = [[cell.strip() for cell in line.strip('|').split(' | ')] for line in section.splitlines() if line.startswith('| ')][1:]
    assert all(len(row) == 4 and all(row) for row in rows), rows
    whos, whoms = ({row[i] for row in rows} for i in (0, 1))
    assert len(whos) == 9 and len(whoms) >= 5 and sorted((row[0], row[1]) for row in rows) == sorted((a, b) for a in whos for b in whoms)
    for _, _, stops, proof in rows:
        tests = re.findall(r'`([\w./-]+)::(\w+)`', proof)
        assert tests or proof == 'trusted' and 'trusted' in stops or proof.startswith('not defended: '), (stops, proof)
        for file, test in tests:
            assert re.search(rf'^ *(?:def|static void) {test}\(', (TOP / 'tests' / file).read_text(), re.M), (file, test)
        for program in re.findall(r'`(fuzz/[\w./]+)`', proof):
            assert (TOP / 'tests' / program).exists(), program
