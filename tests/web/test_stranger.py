"""What somebody tried who wanted to break in, to mislead, or to make it stop: each of these worked once."""
import socket


# ---- the operator's files

def test_a_file_that_is_no_socket_is_not_replaced(house):
    precious = house.directory / 'thesis.txt'
    precious.write_text('years of work')
    link = house.directory / 'link.sock'
    link.symlink_to(precious)
    for path in [precious, link]:
        result = house.cli('web', '--listen', f'unix:{path}', check=False)
        assert result.returncode == 125 and 'cannot listen on' in result.stderr and result.stderr.count('\n') == 1, result
    assert precious.read_text() == 'years of work' and link.is_symlink()


def test_a_socket_that_nobody_listens_on_is_replaced(house):
    path = house.directory / 'left.sock'
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    served = house.serve('--listen', f'unix:{path}')
    assert served.stop()[0] == 0 and not path.exists()


# ---- what is shown is what was written

def test_a_nul_hides_nothing_in_a_table(house, page):
    id = house.run('nul', r'open("nul.csv", "wb").write(b"a\0head,b\n1\0hidden,2\n")')
    text = page.ask(f'/a/{id}/preview?path=nul.csv').text
    assert '<th>a\\x00head</th>' in text and '<td>1\\x00hidden</td><td>2</td>' in text, text
