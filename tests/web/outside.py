"""outside.py BINARY DIRECTORY ID: in a network namespace of its own. Shows every page of that analysis to a browser, and prints who was sent
packets meanwhile, and who when the browser was told to ask somebody else."""
import json
import socket
import subprocess
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from browser import chromium  # noqa: E402
from house import House, quoted, until  # noqa: E402

for words in ['link set lo up', 'route add local default dev lo']:  # whoever is asked for is found here, and refuses
    subprocess.run(['ip', *words.split()], check=True)
packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
packets.bind(('lo', 0))
seen = {'pages': [], 'control': []}
now = 'pages'


def listen():
    while packet := packets.recv(2000):
        if packet[12:14] == b'\x08\x00':
            seen[now].append(socket.inet_ntoa(packet[30:34]))


threading.Thread(target=listen, daemon=True).start()
binary, directory, id = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
house = House(binary, directory)
try:
    page = house.serve()
    with chromium() as driver:
        driver.get(page.url)
        assert until(lambda: driver.title.startswith('Analyses'))
        for path in [f'/a/{id}', '/', '/timeline', '/numbers', f'/compare?a={id}&b={id}', *(f'/a/{id}/preview?path={quoted(name)}' for name in ['evil.html', 'evil.json', '<img src=x onerror=alert(1)>.csv'])]:
            driver.get(f'http://{page.host}{path}')
        now = 'control'
        driver.get('data:text/html,<img src="http://192.0.2.1/x">')
        until(lambda: '192.0.2.1' in seen['control'], 20)
finally:
    house.close()
print(json.dumps({name: sorted(set(found)) for name, found in seen.items()}))
