"""The pages in a real browser: clicked through, with what strangers wrote in them."""
import json
import os
import subprocess
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browser import chromium
from house import quoted, until


@pytest.fixture(scope='module')
def driver(page):
    with chromium() as found:
        found.get(page.url)
        assert until(lambda: found.title == 'Analyses · Fumehood'), (found.title, found.page_source)
        yield found


def address(page, path):
    return f'http://{page.host}{path}'


def text_of(driver, selector):
    """In one breath: the page may be replaced between two."""
    return driver.execute_script('const found = document.querySelector(arguments[0]); return found ? found.textContent : ""', selector)


def requests(driver):
    """Every address that it has asked for since the last call."""
    messages = [json.loads(entry['message'])['message'] for entry in driver.get_log('performance')]
    return [m['params']['request']['url'] for m in messages if m['method'] == 'Network.requestWillBeSent']


def complaints(driver):
    """What it did not do, and says so; that an address is none of ours is no complaint."""
    return [entry for entry in driver.get_log('browser') if 'the server responded with a status of 40' not in entry['message']]


def test_the_token_goes_from_the_address_into_a_cookie(driver, page):
    assert page.token not in driver.current_url
    assert driver.execute_script('return document.cookie') == ''
    assert [cookie['name'] for cookie in driver.get_cookies()] == [f'fumehood-{page.host.split(":")[1]}']


def test_one_clicks_through_every_page(driver, house, page):
    driver.get(address(page, '/'))
    driver.find_element(By.LINK_TEXT, house.hostile).click()
    assert driver.find_element(By.TAG_NAME, 'h1').text == f'{house.hostile} succeeded'
    driver.find_element(By.LINK_TEXT, 'evil.json').click()
    assert 'evil.json' in driver.find_element(By.TAG_NAME, 'h1').text
    driver.find_element(By.LINK_TEXT, house.hostile).click()
    driver.find_element(By.LINK_TEXT, 'Queue').click()
    assert driver.find_element(By.TAG_NAME, 'h1').text == 'Queue'
    driver.find_element(By.LINK_TEXT, 'Analyses').click()
    field = driver.find_element(By.NAME, 'verdict')
    field.send_keys('failed', Keys.ENTER)
    assert until(lambda: 'verdict=failed' in driver.current_url)
    ids = [link.text for link in driver.find_elements(By.CSS_SELECTOR, '#rows td a')]
    assert ids == [house.failed], ids


def test_what_strangers_wrote_does_nothing(driver, house, page):
    requests(driver), complaints(driver)
    for path in ['/', f'/a/{house.hostile}', '/queue', '/timeline', '/numbers', f'/compare?a={house.hostile}&b={house.failed}', '/?id=%3Cscript%3Ealert(1)%3C%2Fscript%3E', '/%3Cscript%3Ealert(1)%3C%2Fscript%3E',
                 *(f'/a/{house.hostile}/preview?path={quoted(name)}' for name in ['evil.html', 'evil.json', '<img src=x onerror=alert(1)>.csv'])]:
        driver.get(address(page, path))
        assert 'owned' not in driver.title, path
        assert driver.execute_script('return document.querySelectorAll("img, iframe, object, embed, main script, [style], [onerror]").length') == 0, path
        wide = driver.execute_script('return document.documentElement.scrollWidth - document.documentElement.clientWidth')
        assert wide <= 0, (path, wide)
    elsewhere = [url for url in requests(driver) if not url.startswith(f'http://{page.host}/')]
    assert elsewhere == []
    assert complaints(driver) == []
    for name in ['evil.html', 'evil.svg']:  # to be saved, whatever they are
        driver.get(address(page, '/'))
        try:
            driver.get(address(page, f'/a/{house.hostile}/output?path={name}'))
        except Exception as told:  # a download is no page
            assert 'ERR_ABORTED' in str(told) or 'aborted' in str(told).lower(), told
        assert 'owned' not in driver.title


@pytest.mark.skipif(os.geteuid() != 0, reason='a network of its own needs root')
def test_nothing_is_asked_of_anybody_else(house):
    """Seen from outside: in a network that has nothing but the page, and a wire that somebody listens to."""
    here = Path(__file__).resolve().parent
    told = subprocess.run(['unshare', '--net', '/usr/bin/python3', here / 'outside.py', house.binary, house.directory, house.hostile],
                          capture_output=True, text=True, timeout=120)
    assert told.returncode == 0, told
    seen = json.loads(told.stdout)
    assert '192.0.2.1' not in seen['pages'], seen
    assert '192.0.2.1' in seen['control'], seen  # the wire does carry it, if a page of another kind asks


def test_a_report_of_a_hostile_analysis_does_nothing(driver, house):
    """Opened from the disk, as who was sent it does."""
    path = house.directory / 'report.html'
    house.cli('report', house.hostile, house.failed, '-o', str(path))
    assert path.stat().st_size < 5 << 20
    requests(driver), complaints(driver)
    driver.get(path.as_uri())
    assert 'owned' not in driver.title and house.hostile in text_of(driver, 'main')
    assert "document.title='owned'" in text_of(driver, 'main')  # as text
    assert driver.execute_script('return document.querySelectorAll("script, iframe, object, embed, [style], [onerror], img[src^=http]").length') == 0
    assert driver.execute_script('return getComputedStyle(document.querySelector("th")).textAlign') == 'left'  # its own style does hold
    assert [url for url in requests(driver) if not url.startswith(('file:', 'data:'))] == []
    assert complaints(driver) == []


def test_rows_change_while_one_looks(driver, house, page):
    driver.get(address(page, '/'))
    assert until(lambda: page.metric('fumehood_web_viewers') >= 1)
    id = house.run('new-row', 'pass')
    assert until(lambda: id in text_of(driver, '#rows')), driver.page_source


def test_a_log_comes_as_it_is_written(driver, house, page):
    id, process = house.start('live', 'echo begun; while read line; do echo "$line"; done; echo ended')
    assert until(lambda: page.runs(id))
    driver.get(address(page, f'/a/{id}'))
    assert until(lambda: 'begun' in text_of(driver, '#live'))
    process.stdin.write(b'<b>more</b> \xff\n')
    process.stdin.flush()
    assert until(lambda: '<b>more</b> \\xff' in text_of(driver, '#live'))
    process.stdin.close()
    assert until(lambda: 'succeeded' in text_of(driver, 'h1')), driver.page_source
    assert until(lambda: 'ended' in text_of(driver, 'pre.log'))


def test_with_a_keyboard(driver, page):
    driver.get(address(page, '/'))
    driver.switch_to.active_element.send_keys(Keys.TAB)
    assert driver.switch_to.active_element.text == 'Skip to what it says'
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert driver.current_url.endswith('#main')


def test_on_a_phone(house, page):
    with chromium(width=390, height=800) as phone:
        phone.get(page.url)
        assert until(lambda: phone.title.startswith('Analyses'))
        for path in ['/', f'/a/{house.hostile}', '/queue', '/timeline', '/numbers', f'/compare?a={house.hostile}&b={house.failed}']:
            phone.get(address(page, path))
            assert phone.execute_script('return document.documentElement.scrollWidth <= window.innerWidth'), path


def test_without_javascript(house, page):
    with chromium(script=False) as plain:
        plain.get(page.url)
        assert plain.title == 'Fumehood'
        plain.find_element(By.NAME, 'token').send_keys(page.token, Keys.ENTER)
        assert until(lambda: plain.title == 'Analyses · Fumehood'), plain.page_source
        plain.find_element(By.LINK_TEXT, house.hostile).click()
        assert until(lambda: plain.title.startswith(house.hostile))
        assert "document.title='owned'" in plain.find_element(By.CSS_SELECTOR, 'pre.log').text
