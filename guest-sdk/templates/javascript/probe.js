// `acme.steady`, a probe for one area of a standard: the same call gives the same text twice.
import { progress, score, submit } from 'mcpeval:probe/report@0.1.0';

const AREA = 'steady';
const CHECK = 'steady.same';

const texts = (result) => {
  const content = Array.isArray(result.content) ? result.content : [];
  return JSON.stringify(content.filter((block) => block?.type === 'text').map((block) => block.text));
};

const succeeded = (result) =>
  result !== null && typeof result === 'object' && !Array.isArray(result) && (result.isError ?? false) === false;

// Makes a call twice and compares the texts.
const judge = (target, params) => {
  const seen = [];
  const evidence = [];
  for (let attempt = 1; attempt <= 2; attempt += 1) {
    let result = null;
    try {
      // Asked for every time: after a fault it is a fresh session. It is shared, so no handle of it need be let go.
      const { reply, exchange } = target.primary().request('tools/call', params, undefined);
      evidence.push(exchange);
      result = reply.tag === 'ok' ? JSON.parse(reply.val) : null;
    } catch (error) {
      // A fault of the host, or a mistake in this file.
      const fault = error.payload;
      // Nothing was sent, for the budget is spent: that is no verdict. Uncaught, a fault ends the run with itself.
      if (fault === undefined || fault.cause.tag === 'refused') throw error;
      if (fault.exchange !== null) evidence.push(fault.exchange);
    }
    if (!succeeded(result)) return { verdict: 'fail', reason: 'acme.call-failed', evidence };
    seen.push(texts(result));
  }
  return seen[0] === seen[1] ? { verdict: 'pass', evidence } : { verdict: 'fail', reason: 'acme.unsteady', evidence };
};

export const probe = {
  describe() {
    return {
      kind: 'acme.steady',
      version: '0.1.0',
      title: 'Equal calls give equal texts',
      summary: 'Calls every callable tool twice with the same arguments and compares the texts of the results.',
      configSchema: JSON.stringify({
        type: 'object',
        properties: { areas: { type: 'array', items: { const: AREA } }, lanes: { type: 'integer' } },
        additionalProperties: false,
      }),
      checks: [{ id: CHECK, level: 'should', title: 'Equal calls give equal texts', area: AREA }],
      reasons: [
        {
          label: 'acme.call-failed',
          hint: 'A valid call did not succeed; call the tool by hand and see why.',
          checks: [CHECK],
        },
        {
          label: 'acme.unsteady',
          hint: 'Two equal calls gave different texts; remove times, random numbers and unsorted lists from the result.',
          checks: [CHECK],
        },
      ],
      metrics: [],
      needs: [],
      access: 'read-only',
      asks: { requests: 20, sessions: 0, millis: 2000 },
    };
  },

  run(target) {
    // A set, since a catalog may name a tool twice.
    const callable = target.tools().filter((tool) => tool.blocked === null);
    const tools = new Set(callable.map((tool) => tool.name));
    let judged = 0;
    let steady = 0;
    let finished = 0;
    for (const name of tools) {
      const args = target.arguments(name);
      // Put together as text: the arguments travel as the host gave them.
      const params = `{"name":${JSON.stringify(name)},"arguments":${args}}`;
      const finding = args === null ? { verdict: 'untested', evidence: [] } : judge(target, params);
      if (finding.verdict !== 'untested') judged += 1;
      if (finding.verdict === 'pass') steady += 1;
      submit({ check: CHECK, subject: name, ...finding });
      finished += 1;
      progress(finished, tools.size);
    }
    // Where no tool may be called none can be unsteady. Where some may and none could be, nothing was shown.
    const unjudged = tools.size === 0 ? 100 : 0;
    score({ area: AREA, score: judged === 0 ? unjudged : (100 * steady) / judged });
    return { attempts: 1, firstFailure: steady < judged ? 1 : undefined };
  },
};
