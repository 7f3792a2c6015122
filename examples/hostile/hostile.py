"""What an analysis might try: to change its input and a system file, to look around, to call out, to kill."""
import os
import socket

for attempt in (lambda: open("data/iris.csv", "a").write("6,6,6,6,me\n"),
                lambda: open("/etc/passwd", "a"),
                lambda: os.listdir("/home"),
                lambda: socket.create_connection(("192.0.2.1", 53), 2),
                lambda: os.kill(1, 9)):
    try:
        attempt()
        print("done")
    except OSError as e:
        print(type(e).__name__, e)
