"""The platform in miniature (examples/platform) on PostgreSQL, before and after."""
import json
import re
import subprocess

import pytest

import ledgers
from test_examples import copy_of

# What a hostile script tries with the platform's own database: over TCP, and by what the platform has in its environment.
REACH = '''
import os, socket
print(sorted(name for name in os.environ if "DATABASE" in name or "FUMEHOOD_DB" in name))
socket.create_connection(("127.0.0.1", {port}), 5)
print("reached")
open("ratios.json", "w").write('{{"setosa": {{"mean": 0.3, "sd": 0.1, "n": 50}}}}')
'''


@pytest.fixture
def platform(program, hood, server):
    """Its tables, and a way to run a function of either orchestrator."""
    ledger = ledgers.Postgres(hood, server)
    place = copy_of(hood, 'platform')
    subprocess.run(['sh', '-ec', '(cat tables.sql before/tables.sql reader.sql; /usr/bin/python3 load.py) | '
                    f"psql -q -v password=PASSWORD -v ON_ERROR_STOP=1 '{ledger.plain}'"], cwd=place, check=True, stdout=subprocess.DEVNULL)
    hood.write(hood.home / '.pgpass', '*:*:*:platform_reader:PASSWORD\n', 0o600)
    hood.env['DATABASE_URL'] = ledger.plain

    class Platform:
        port = re.search(r':(\d+)/', ledger.plain).group(1)
        script = (place / 'analysis.py').read_text()

        def __init__(self):
            self.place, self.sql = place, ledger.sql

        def call(self, version, text, **others):
            return program(f'sys.path.insert(0, {str(place / version)!r})\nimport orchestrator\n'
                           f'SCRIPT = open("analysis.py").read()\n' + text, cwd=place, **others)

        def with_two_imports(self):
            """What the README says: two lines of the orchestrator that is there, and nothing else."""
            text = (place / 'before/orchestrator.py').read_text()
            changed = text.replace('\nimport subprocess\n', '\nfrom fumehood import subprocess\n') \
                .replace('\nfrom workspace import ', '\nfrom fumehood import ')
            assert sum(a != b for a, b in zip(text.splitlines(), changed.splitlines())) == 2
            hood.write(place / 'imports/orchestrator.py', changed)
            return 'imports'

        def rows(self):
            return ledger.sql('SELECT analysis_id, species FROM hypotheses ORDER BY 1, 2')

    yield Platform()
    ledger.close()


def test_before_and_after_save_the_same(platform, hood):
    said = [platform.call(version, f'say(orchestrator.run_single(ID({n}), SCRIPT))')
            for n, version in enumerate(['before', platform.with_two_imports(), 'after'])]
    assert said == [3, 3, 3]
    rows = platform.sql('SELECT substr(analysis_id, 11), title, species, score FROM hypotheses ORDER BY 1, 2')
    assert len(rows) == 9 and {row[2:] for row in rows[:3]} == {row[2:] for row in rows[3:6]} == {row[2:] for row in rows[6:]}
    recorded = platform.sql('SELECT analysis_id, verdict FROM fumehood.attempt ORDER BY 1')
    assert recorded == [f'{hood.tag}-1|succeeded', f'{hood.tag}-2|succeeded']


def test_with_two_imports_it_can_be_run_as_often_as_before(platform, hood):
    """The same id, in a process of its own each time: its rows, and an attempt of its own under the hood."""
    imports = platform.with_two_imports()
    for version in ('before', 'before', imports, imports):
        assert platform.call(version, 'say(orchestrator.run_single(ID(1), SCRIPT))') == 3
        platform.sql('DELETE FROM hypotheses')
    assert platform.sql('SELECT number, verdict FROM fumehood.attempt ORDER BY 1') == ['1|succeeded', '2|succeeded']


def test_its_analyses_cannot_reach_its_database(platform, hood):
    """The control: before, they can."""
    reach = f'REACH = {REACH.format(port=platform.port)!r}\n'
    assert platform.call('before', reach + 'say(orchestrator.run_single(ID(1), REACH))') == 1
    for n, version in ((2, platform.with_two_imports()), (3, 'after')):
        assert platform.call(version, reach + f'''
try:
    orchestrator.run_single(ID({n}), REACH)
except fumehood.AnalysisFailed as e:
    say(e.log[-1])
''') in ('OSError: [Errno 101] Network is unreachable', 'ConnectionRefusedError: [Errno 111] Connection refused')
        assert hood.log(f'{hood.tag}-{n}').splitlines()[0] == '[]'
    assert platform.rows() == [f'{hood.tag}-1|setosa']


def test_outputs_and_rows_arrive_in_one_transaction(platform, hood):
    for table in ('hypotheses', 'debates'):
        platform.sql(f'ALTER TABLE {table} ADD COLUMN transaction BIGINT DEFAULT txid_current()')
    platform.call('after', 'orchestrator.run_single(ID(1), SCRIPT)')
    platform.call('after', 'say(orchestrator.run_debate(ID(2), "Are they long?"))')
    for n, table, ours in ((1, 'hypotheses', 'attempt'), (1, 'hypotheses', 'output'), (2, 'debates', 'attempt')):
        id = f'{hood.tag}-{n}'
        theirs = platform.sql(f"SELECT DISTINCT transaction FROM {table} WHERE analysis_id = '{id}'")
        assert len(theirs) == 1
        assert platform.sql(f"SELECT DISTINCT xmin FROM fumehood.{ours} WHERE analysis_id = '{id}'") == theirs, ours
    assert json.loads(hood.succeed('show', f'{hood.tag}-2', '--json').out)['result'] == {
        'conclusion': 'Are they long? The petals say so.'}


def test_early_failures_leave_nothing(platform, hood, program):
    said = platform.call('after', '''
def attempt(what):
    try:
        what()
    except Exception as e:
        say(type(e).__name__)
attempt(lambda: orchestrator.run_single("../" + ID(1), SCRIPT))
orchestrator.IRISES = {"irises.csv": "SELECT * FROM no_such_table"}
attempt(lambda: orchestrator.run_single(ID(2), SCRIPT))
orchestrator.IRISES = {"irises.csv": "DELETE FROM irises"}
attempt(lambda: orchestrator.run_single(ID(3), SCRIPT))
orchestrator.IRISES, orchestrator.LIMITS = {}, fumehood.Limits(memory="lots")
attempt(lambda: orchestrator.run_single(ID(4), SCRIPT))
orchestrator.LIMITS = fumehood.Limits()
orchestrator.run_python_script = lambda a, script: 1 / 0
attempt(lambda: orchestrator.run_single(ID(5), SCRIPT))
''')
    assert said[0] == 'UsageError' and said[-1] == 'ZeroDivisionError' and len(said) == 5, said
    assert program.left() == [] and platform.rows() == []
    assert platform.sql('SELECT count(*) FROM fumehood.attempt') == ['0']
    assert platform.sql('SELECT count(*) FROM irises') == ['150']
    assert [path for path in (hood.home / 'state/fumehood/runs').iterdir()] == []


def test_rows_that_the_database_refuses_are_not_there(platform, hood):
    """The score must be above 0: none of the rows is there, and the verdict says why."""
    bad = '''SCRIPT = 'import json; json.dump({"a": {"mean": 1, "sd": 1}, "b": {"mean": -1, "sd": 1}}, open("ratios.json", "w"))'
try:
    orchestrator.run_single(ID(1), SCRIPT)
except fumehood.FumehoodError as e:
    say(type(e).__name__)
'''
    said = platform.call('after', bad + 'say([row.verdict for row in fumehood.ls()])')
    assert platform.rows() == [] and said == ['PostProcessFailed', ['post_process_failed']], said


def test_what_is_queued_is_done_by_a_worker(platform, hood):
    said = platform.call('after', '''
say(orchestrator.start_queued_analysis(ID(1), SCRIPT))
say(orchestrator.start_queued_analysis(ID(1), SCRIPT))
with fumehood.Worker(1):
    say([job.verdict for job in fumehood.wait(ID(1), timeout=50)])
say(orchestrator.post_process(ID(1)))
''')
    assert said == [f'{hood.tag}-1', f'{hood.tag}-1', ['succeeded'], 3], said
    assert len(platform.rows()) == 3
    platform.sql(f"INSERT INTO analyses(id, script) VALUES ('{hood.tag}-old', $script${platform.script}$script$)")
    assert platform.call('before', 'say(orchestrator.start_queued_analysis())') == f'{hood.tag}-old'
    assert platform.sql('SELECT status FROM analyses') == ['succeeded']
