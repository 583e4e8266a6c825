"""Runs malloc-life under the malloc library and checks what it says and how it ends."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile

LIBRARY, LIFE, PLUGIN, OWN, COMPILER = sys.argv[1:]
KIB = 1024
failures = []


def run(*command: str, preload: str = LIBRARY, **variables: str) -> tuple[int, str]:
    """Status and output of a command with the library preloaded."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ROPEWALK_")}
    environment |= {"LD_PRELOAD": preload, "ROPEWALK_ARENA_BYTES": "1G", **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def expect(what: str, found: object, wanted: object) -> None:
    """Notes a difference."""
    if found != wanted:
        failures.append(f"{what}: found {found!r}, expected {wanted!r}")


def asked(*words: str, **variables: str) -> tuple[str, str]:
    """Whose a block is, and what the library says of itself."""
    _, text = run(LIFE, *words, **variables)
    lines = [*text.splitlines(), "", ""]
    return lines[0], lines[1]


def where(bytes_: int, **variables: str) -> tuple[str, str]:
    """The same of a first block of so many bytes."""
    return asked("where", str(bytes_), **variables)


def ways_to_end() -> None:
    """Each with its status, and not a word said."""
    wanted = {
        "return": 0,
        "exit": 4,
        "_exit": 5,
        "quick_exit": 6,
        "abort": -signal.SIGABRT,
        "kill": -signal.SIGKILL,
        "exec": 4,
        "thread": 7,
    }
    for way, status in wanted.items():
        expect(way, run(LIFE, way), (status, ""))
        expect(way + ", disabled", run(LIFE, way, ROPEWALK_DISABLE="1"), (status, ""))
    expect("plugin", run(LIFE, "plugin", PLUGIN), (0, "arena\n"))


def settings() -> None:
    """What the environment decides."""
    expect("default", where(128 * KIB), ("arena", "on"))
    expect("below", where(128 * KIB - 1), ("libc", "on"))
    expect("disabled", where(KIB * KIB, ROPEWALK_DISABLE="1"), ("libc", "off: ROPEWALK_DISABLE"))
    expect("not disabled", where(KIB * KIB, ROPEWALK_DISABLE="0"), ("arena", "on"))
    larger = {"ROPEWALK_MALLOC_THRESHOLD": "1M"}
    expect("1M, below", where(KIB * KIB - 1, **larger), ("libc", "on"))
    expect("1M", where(KIB * KIB, **larger), ("arena", "on"))
    for off in "off", "0":
        expect(off, where(KIB * KIB, ROPEWALK_MALLOC_THRESHOLD=off)[0], "libc")
    found = where(128 * KIB, ROPEWALK_MALLOC_THRESHOLD="12 apples")
    expect("malformed", (found[0], "12 apples" in found[1]), ("arena", True))
    for name in "ROPEWALK_PAGES", "ROPEWALK_ARENA_BYTES", "ROPEWALK_FORK":
        found = where(KIB * KIB, **{name: "apples"})
        expect(name, (found[0], name in found[1]), ("libc", True))
    expect("no room", where(2 << 30)[0], "libc")
    expect("learns", asked("learn"), ("libc", "on"))
    expect("learns, set", asked("learn", ROPEWALK_MALLOC_LEARN="1"), ("libc", "on"))
    expect("learns nothing", asked("learn", ROPEWALK_MALLOC_LEARN="0"), ("arena", "on"))
    found = asked("learn", ROPEWALK_MALLOC_LEARN="apples")
    expect("learns apples", (found[0], "MALLOC_LEARN" in found[1]), ("libc", True))


def other_allocators() -> None:
    """The library stands back where malloc is another's."""
    status, text = run(OWN)
    expect("own malloc", (status, text.startswith("off: ")), (0, True))
    # A sanitizer's runtime comes before the library, and must find nothing of ours in its way.
    if shutil.which(COMPILER) is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "small.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(
                "#include <stdlib.h>\nint main(int n, char** a) {"
                " volatile char* p = malloc(1 << 20);"
                " p[n > 1 ? 1 << 20 : 5] = 1; free((void*)p); return 0; }\n"
            )
        program = os.path.join(folder, "small")
        built = subprocess.run(
            [COMPILER, "-x", "c", "-fsanitize=address", "-o", program, source],
            capture_output=True,
            check=False,
        )
        runtime = subprocess.run(
            [COMPILER, "-print-file-name=libasan.so"], capture_output=True, text=True, check=False
        ).stdout.strip()
        if built.returncode != 0 or not os.path.isabs(runtime):
            return
        both = f"{runtime}:{LIBRARY}"
        options = {"ASAN_OPTIONS": "detect_leaks=0"}
        if subprocess.run([program], check=False, capture_output=True).returncode != 0:
            return  # the sanitizer does not run here
        expect("under ASan", run(program, preload=both, **options), (0, ""))
        status, text = run(program, "overflow", preload=both, **options)
        found = (status != 0, "heap-buffer-overflow" in text)
        expect("ASan still finds", found, (True, True))


ways_to_end()
settings()
other_allocators()
print("\n".join(failures) if failures else "all as expected")
sys.exit(1 if failures else 0)
