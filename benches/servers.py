"""What the measuring scripts share: how a server is found and configured."""
import os, shutil

PHP_FPM = """[global]
error_log = {scratch}/php.log
daemonize = no
[www]
{user}listen = {scratch}/php.sock
listen.mode = 0666
listen.backlog = 1024
pm = static
pm.max_children = {workers}
env[SECONDS] = {seconds}
"""


def program(*names):
    for name in names:
        found = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
        if found:
            return found
    raise FileNotFoundError(names[0])


def written(scratch, name, text):
    path = os.path.join(scratch, name)
    with open(path, "w") as file:
        file.write(text)
    return path
