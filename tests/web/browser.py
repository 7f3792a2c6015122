"""A real Chromium, in a network of its own where there is nothing but the page: whatever it asked of anybody else would be seen there."""
import contextlib
import os

from selenium import webdriver
from selenium.webdriver.chrome.service import Service


@contextlib.contextmanager
def chromium(script=True, dark=False, width=1280, height=900):
    options = webdriver.ChromeOptions()
    options.binary_location = '/usr/bin/chromium'
    words = ['--headless=new', '--disable-gpu', '--disable-dev-shm-usage', f'--window-size={width},{height}', '--disable-background-networking',
             '--disable-component-update', '--no-first-run', '--force-color-profile=srgb']
    if os.geteuid() == 0:
        words.append('--no-sandbox')
    if dark:
        words.append('--force-dark-mode')
    for word in words:
        options.add_argument(word)
    if not script:
        options.add_experimental_option('prefs', {'profile.managed_default_content_settings.javascript': 2})
    options.set_capability('goog:loggingPrefs', {'browser': 'ALL', 'performance': 'ALL'})
    driver = webdriver.Chrome(service=Service('/usr/bin/chromedriver'), options=options)
    try:
        driver.set_page_load_timeout(60)
        yield driver
    finally:
        driver.quit()
