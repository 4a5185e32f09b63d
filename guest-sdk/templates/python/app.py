"""`acme.steady`, a probe for one area of a standard: the same call gives the same text twice."""

import json

from componentize_py_types import Err, Ok
from wit_world import exports
from wit_world.imports import report
from wit_world.imports.types import (
    Access,
    Allowance,
    AreaScore,
    Case,
    Cause_Refused,
    Check,
    Finding,
    Level,
    Manifest,
    Outcome,
    Reason,
    Verdict,
)

AREA = "steady"
CHECK = "steady.same"


def texts(result):
    content = result.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return [block.get("text") for block in blocks if block.get("type") == "text"]


def judge(target, params):
    """Makes a call twice and compares the texts: verdict, reason, evidence."""
    seen, evidence = [], []
    for _ in range(2):
        result = None
        try:
            # Asked for every time: after a fault it is a fresh session.
            with target.primary() as session:
                answer = session.request("tools/call", params, None)
            evidence.append(answer.exchange)
            if isinstance(answer.reply, Ok):
                result = json.loads(answer.reply.value)
        except Err as error:
            # Nothing was sent, for the budget is spent: that is no verdict. Uncaught, a fault ends the run with itself.
            if isinstance(error.value.cause, Cause_Refused):
                raise
            if error.value.exchange is not None:
                evidence.append(error.value.exchange)
        if not isinstance(result, dict) or result.get("isError", False) is not False:
            return Verdict.FAIL, "acme.call-failed", evidence
        seen.append(texts(result))
    if seen[0] == seen[1]:
        return Verdict.PASS, None, evidence
    return Verdict.FAIL, "acme.unsteady", evidence


class Probe(exports.Probe):
    def describe(self) -> Manifest:
        schema = {
            "type": "object",
            "properties": {"areas": {"type": "array", "items": {"const": AREA}}, "lanes": {"type": "integer"}},
            "additionalProperties": False,
        }
        return Manifest(
            kind="acme.steady",
            version="0.1.0",
            title="Equal calls give equal texts",
            summary="Calls every callable tool twice with the same arguments and compares the texts of the results.",
            config_schema=json.dumps(schema),
            checks=[Check(CHECK, Level.SHOULD, "Equal calls give equal texts", None, AREA)],
            reasons=[
                Reason(
                    "acme.call-failed", "A valid call did not succeed; call the tool by hand and see why.", [CHECK]
                ),
                Reason(
                    "acme.unsteady",
                    "Two equal calls gave different texts; remove times, random numbers and unsorted lists from the "
                    "result.",
                    [CHECK],
                ),
            ],
            metrics=[],
            needs=[],
            access=Access.READ_ONLY,
            asks=Allowance(20, 0, 2000),
        )

    def run(self, target, case: Case) -> Outcome:
        # Keys of a dictionary, since a catalog may name a tool twice.
        tools = dict.fromkeys(tool.name for tool in target.tools() if tool.blocked is None)
        judged = steady = 0
        for finished, name in enumerate(tools, start=1):
            verdict, reason, evidence = Verdict.UNTESTED, None, []
            arguments = target.arguments(name)
            if arguments is not None:
                # Put together as text: the arguments travel as the host gave them.
                verdict, reason, evidence = judge(target, f'{{"name":{json.dumps(name)},"arguments":{arguments}}}')
                judged += 1
                steady += verdict is Verdict.PASS
            report.submit(Finding(CHECK, name, None, verdict, None, reason, None, None, evidence))
            report.progress(finished, len(tools))
        # Where no tool may be called none can be unsteady. Where some may and none could be, nothing was shown.
        unjudged = 0.0 if tools else 100.0
        report.score(AreaScore(AREA, 100.0 * steady / judged if judged else unjudged, None))
        return Outcome(1, 1 if steady < judged else None)
