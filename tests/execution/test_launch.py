from __future__ import annotations

from proctor.execution import Launch


def test_the_text_of_a_launch_names_variables_and_shows_no_value() -> None:
    text = repr(Launch(argv=("env",), env={"API_TOKEN": "s3cret-value"}, cwd="/", umask=0o022, nice=0))
    assert "API_TOKEN" in text
    assert "s3cret-value" not in text
