from __future__ import annotations

import pytest

from proctor import ErrorCode, RequestError, env
from proctor.runtime import Environment, Request

pytestmark = pytest.mark.requirement("I2-environment")

SECRETS = {"GITHUB_TOKEN": "t", "AWS_SECRET_ACCESS_KEY": "k", "MY_API_KEY": "a"}
HOST = {"PATH": "/bin", "HOME": "/home/u", **SECRETS, "KEYBOARD": "de", "PAGER": "less"}


def build(request: Request | None = None, **options: object) -> tuple[dict[str, str], tuple[str, ...]]:
    built = Environment(HOST, **options).build(request or Request(command="x"), execution_id="ID", workspace="/w")  # type: ignore[arg-type]
    return built.values, built.withheld


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "OPENAI_API_KEY",
        "DB_PASSWORD",
        "PGPASSWORD_PASSWD",
        "DATABASE_URL",
        "NPM_AUTH",
        "apiKey_secret",
        "X_PAT",
    ],
)
def test_names_of_secrets_are_known(name: str) -> None:
    assert env.is_secret_name(name)


@pytest.mark.parametrize("name", ["PATH", "HOME", "KEYBOARD", "TOKENIZER", "MONKEY", "LANG", "AUTHOR", "SSH_AUTH_SOCK", "COMPAT"])
def test_ordinary_names_are_no_secrets(name: str) -> None:
    assert not env.is_secret_name(name)


def test_secrets_are_withheld_and_listed_by_name() -> None:
    values, withheld = build()
    assert withheld == ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "MY_API_KEY")
    assert values.keys().isdisjoint(withheld)
    assert values["KEYBOARD"] == "de"


def test_one_that_is_asked_for_by_name_passes() -> None:
    values, withheld = build(Request(command="x", env_pass=("GITHUB_TOKEN",)))
    assert values["GITHUB_TOKEN"] == SECRETS["GITHUB_TOKEN"]
    assert "GITHUB_TOKEN" not in withheld


def test_settings_pass_and_withhold_more() -> None:
    values, withheld = build(allowed={"MY_API_KEY"}, withhold={"KEY*"})
    assert values["MY_API_KEY"] == "a"
    assert "KEYBOARD" in withheld


def test_programs_are_kept_from_waiting_for_a_person_unless_the_caller_says_otherwise() -> None:
    values, _ = build()
    assert {name: values[name] for name in env.QUIET} == env.QUIET
    values, _ = build(Request(command="x", env={"PAGER": "most"}))
    assert values["PAGER"] == "most"


def test_every_variable_of_the_registry_is_set_and_cannot_be_forged() -> None:
    values, _ = build(Request(command="x", session="s", env={"PROCTOR_EXECUTION_ID": "another"}))
    assert {variable.name for variable in env.SET} <= values.keys()
    assert (values["PROCTOR_EXECUTION_ID"], values["PROCTOR_SESSION"], values["PROCTOR_WORKSPACE"]) == ("ID", "s", "/w")


def test_a_host_application_provides_variables_that_are_asked_for_at_each_start() -> None:
    environment, counted = Environment(HOST), iter("12")
    environment.provide("TURN", lambda: next(counted))
    first, second = (environment.build(Request(command="x"), execution_id="i", workspace=None).values["TURN"] for _ in range(2))
    assert (first, second) == ("1", "2")


@pytest.mark.parametrize(("name", "value"), [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0")])
def test_what_no_environment_can_hold_is_a_bad_request(name: str, value: str) -> None:
    with pytest.raises(RequestError) as refused:
        build(Request(command="x", env={name: value}))
    assert refused.value.code is ErrorCode.INVALID_REQUEST
