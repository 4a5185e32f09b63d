// `acme.steady`: the same call gives the same text twice.
import { submit } from 'mcpeval:probe/report@0.1.0';

const texts = (result) => {
  const content = Array.isArray(result.content) ? result.content : [];
  return JSON.stringify(content.filter((block) => block.type === 'text').map((block) => block.text));
};

const finding = (verdict, reason, evidence) => ({ check: 'acme.steady', verdict, reason, evidence });

export const probe = {
  describe() {
    return {
      kind: 'acme.steady',
      version: '0.1.0',
      title: 'Equal calls give equal texts',
      summary: 'Calls a tool twice with the same arguments and compares the texts of the results.',
      configSchema: JSON.stringify({
        type: 'object',
        properties: { tool: { type: 'string', format: 'tool' }, arguments: { type: 'object' } },
        required: ['tool'],
        additionalProperties: false,
      }),
      checks: [{ id: 'acme.steady', level: 'should', title: 'Equal calls give equal texts' }],
      reasons: [
        {
          label: 'unexpected-outcome',
          hint: 'The call did not succeed; call the tool by hand and see why.',
          checks: ['acme.steady'],
        },
        {
          label: 'acme.unsteady',
          hint: 'Two equal calls gave different texts; remove times, random numbers and unsorted lists from the result.',
          checks: ['acme.steady'],
        },
      ],
      metrics: [],
      needs: [],
      access: 'read-only',
      asks: { requests: 2, sessions: 0, millis: 2000 },
    };
  },

  run(target, kase) {
    const config = JSON.parse(kase.config);
    const params = JSON.stringify({ name: config.tool, arguments: config.arguments ?? {} });
    // The collector decides when a handle is let go; this session is shared and outlives it.
    const session = target.primary();
    const seen = [];
    const evidence = [];
    for (let attempt = 1; attempt <= 2; attempt += 1) {
      // A fault is no verdict: uncaught, it ends the run with itself.
      const { reply, exchange } = session.request('tools/call', params, undefined);
      evidence.push(exchange);
      const result = reply.tag === 'ok' ? JSON.parse(reply.val) : undefined;
      if (result === null || typeof result !== 'object' || (result.isError ?? false) !== false) {
        submit(finding('fail', 'unexpected-outcome', evidence));
        return { attempts: attempt, firstFailure: attempt };
      }
      seen.push(texts(result));
    }
    const steady = seen[0] === seen[1];
    submit(steady ? finding('pass', undefined, evidence) : finding('fail', 'acme.unsteady', evidence));
    return { attempts: 2, firstFailure: steady ? undefined : 2 };
  },
};
