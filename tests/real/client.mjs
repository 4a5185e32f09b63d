// The official TypeScript client: makes the calls of a file on a server and prints the answers.
// client.mjs SDK CALLS (--url URL | -- COMMAND ARGUMENTS...), where SDK is the folder of the package and CALLS a JSON
// array of [tool, arguments].
import { readFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';

const [sdk, file, way, ...target] = process.argv.slice(2);
const part = (name) => import(pathToFileURL(`${sdk}/dist/esm/client/${name}.js`));
const { Client } = await part('index');

const transport = async () => {
  if (way === '--url') {
    const { StreamableHTTPClientTransport } = await part('streamableHttp');
    return new StreamableHTTPClientTransport(new URL(target[0]));
  }
  const { StdioClientTransport } = await part('stdio');
  return new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env });
};

const client = new Client({ name: 'tests', version: '1.0.0' });
const opened = await transport();
await client.connect(opened);
const found = [(await client.listTools()).tools.map((tool) => tool.name).sort()];
for (const [name, arguments_] of JSON.parse(await readFile(file, 'utf8'))) {
  try {
    found.push(await client.callTool({ name, arguments: arguments_ }));
  } catch (error) {
    found.push({ code: error.code, message: error.message });
  }
}
if (way === '--url') await opened.terminateSession();
await client.close();
console.log(JSON.stringify(found));
