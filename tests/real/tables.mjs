// The tables of markdown as a CommonMark parser sees them, as JSON: node tables.mjs FILE. Needs marked beside it.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.env.NODE_MODULES_OF ?? process.cwd(), "package.json"));
const { lexer } = require("marked");

const tables = lexer(readFileSync(process.argv[2], "utf8")).filter((token) => token.type === "table");
console.log(JSON.stringify(tables.map((table) => [table.header, ...table.rows].map((row) => row.map((cell) => cell.text)))));
