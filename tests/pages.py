"""The code of the pages in docs/, as tests run it."""

import doctest
import re
from typing import Any

CODE = re.compile(
    r"^(?:<!-- not run: (?P<reason>.+) -->\n)?```(?:python|pycon)\n(?P<code>.*?)^```",
    re.MULTILINE | re.DOTALL,
)


def run_code(text: str, name: str) -> dict[str, Any]:
    """Run all code of a text, from an empty namespace, and compare the results that it shows."""
    session: dict[str, Any] = {}
    for block in CODE.finditer(text):
        code = block["code"]
        if block["reason"]:
            continue
        if code.startswith(">>>"):
            example = doctest.DocTestParser().get_doctest(code, session, name, name, None)
            shown: list[str] = []
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            runner.run(example, out=shown.append, clear_globs=False)
            assert not runner.failures, "".join(shown)
            session.update(example.globs)
        else:
            exec(compile(code, name, "exec"), session)
    return session
