from __future__ import annotations

import pytest

from proctor import ErrorCode, RequestError
from proctor.dialects import INLINE_LIMIT_BYTES, NAMES, default_dialect, find, platform, shell_call

pytestmark = pytest.mark.requirement("I2-dialects")

PLACES = {"/bin/bash", "/bin/sh", "/opt/shells/zsh"}


def there(path: str) -> bool:
    return path in PLACES


@pytest.mark.parametrize("text", ["echo hi", "a\nb", "# only", "echo b \\", "x 'y' \"z\" $A `b` !", " ", "\udcff"])
def test_the_text_is_one_argument_as_it_was_given(text: str) -> None:
    assert shell_call("/bin/bash", text, login=True).argv == ("/bin/bash", "-lc", text)
    assert shell_call("/bin/sh", text, login=False).argv == ("/bin/sh", "-c", text)


@pytest.mark.parametrize("login", [True, False])
def test_a_text_too_long_for_an_argument_becomes_a_script_on_descriptor_three(*, login: bool) -> None:
    text = "é" * (INLINE_LIMIT_BYTES // 2 + 1)
    call = shell_call("/bin/bash", text, login=login)
    assert call.script == text.encode()
    assert call.argv == ("/bin/bash", *(("-l",) if login else ()), "/dev/fd/3")


def test_a_text_of_exactly_the_limit_is_still_an_argument() -> None:
    assert shell_call("sh", "x" * INLINE_LIMIT_BYTES, login=False).script is None
    assert shell_call("sh", "x" * (INLINE_LIMIT_BYTES + 1), login=False).script is not None


def test_the_default_is_bash_else_sh_and_cmd_on_windows() -> None:
    assert default_dialect({}, "linux", there) == "bash"
    assert default_dialect({}, "macos", lambda path: path == "/bin/sh") == "sh"
    assert default_dialect({}, "windows", lambda _: False) == "cmd"


def test_a_shell_is_found_in_its_usual_places_then_in_path() -> None:
    assert find("bash", {}, "linux", there) == "/bin/bash"
    assert find("zsh", {"PATH": "relative:/opt/shells"}, "linux", there) == "/opt/shells/zsh"


def test_a_shell_that_is_not_there_is_named_and_never_replaced_by_another() -> None:
    with pytest.raises(RequestError) as refused:
        find("zsh", {"PATH": "/bin"}, "linux", there)
    assert refused.value.code is ErrorCode.PROGRAM_NOT_FOUND
    assert "zsh" in refused.value.message


@pytest.mark.parametrize("name", ["fish", "", "BASH", "bash "])
def test_a_name_that_is_no_dialect_is_refused_with_those_that_are(name: str) -> None:
    with pytest.raises(RequestError) as refused:
        find(name, {}, "linux", there)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert all(known in refused.value.hint for known in NAMES)


@pytest.mark.parametrize("name", ["cmd", "pwsh", "powershell"])
def test_dialects_of_a_later_part_say_that_they_are_not_supported(name: str) -> None:
    with pytest.raises(RequestError) as refused:
        find(name, {}, "linux", there)
    assert refused.value.code is ErrorCode.UNSUPPORTED_HERE


@pytest.mark.posix
def test_this_platform_has_a_name() -> None:
    assert platform() in {"linux", "macos"}
