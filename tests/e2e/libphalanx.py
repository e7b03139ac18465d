"""Python programs on libphalanx of this build, as tasks of end-to-end tests."""
import os
import subprocess

from e2e import BUILD, ROOT

PYTHON = "/usr/bin/python3"


def environment():
    """For Python tasks on python/phalanx of this build."""
    library = os.path.join(BUILD, "libphalanx.so")
    env = [("PYTHONPATH", os.path.join(ROOT, "python")), ("PHX_LIB", library),
           ("PYTHONDONTWRITEBYTECODE", "1")]
    with open(library, "rb") as file:
        if b"libasan" in file.read():  # it has to be loaded before everything else
            path = subprocess.check_output(["gcc", "-print-file-name=libasan.so"], text=True)
            env += [("LD_PRELOAD", path.strip()), ("ASAN_OPTIONS", "detect_leaks=0")]
    return env


def script(cluster, name, text):
    path = os.path.join(cluster.folder, name + ".py")
    with open(path, "w") as file:
        file.write(text)
    return [PYTHON, path, cluster.folder]
