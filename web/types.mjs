// Makes src/api_types.ts from docs/openapi.json: the types of the server's answers.
//   node types.mjs        writes it
//   types.test.mjs        fails where it is not what this makes

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = new URL(".", import.meta.url);
export const source = fileURLToPath(new URL("../docs/openapi.json", here));
export const target = fileURLToPath(new URL("src/api_types.ts", here));

/** "#/components/schemas/v1Experiment" is Experiment. */
const nameOf = (ref) => {
  const name = ref.split("/").pop();
  return /^v1[A-Z]/.test(name) ? name.slice(2) : name;
};
const plain = (key) => (/^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key));
const union = (parts) => [...new Set(parts)].join(" | ");
const grouped = (type) => (/ [|&] /.test(type) && !/^[{]/.test(type) ? `(${type})` : type);

function refsIn(x, out) {
  if (Array.isArray(x)) x.forEach((one) => refsIn(one, out));
  else if (x && typeof x === "object")
    for (const [key, one] of Object.entries(x)) {
      if (key === "$ref") out.add(one);
      else refsIn(one, out);
    }
  return out;
}

/** A schema as a type; `inset` is how far its lines stand in. */
function typeOf(schema, inset) {
  const type = bare(schema, inset);
  return schema.nullable ? `${type} | null` : type;
}

function bare(schema, inset) {
  if (schema.$ref) return nameOf(schema.$ref);
  if (schema.allOf) {
    if (schema.allOf.length !== 1) throw new Error("allOf of several schemas is not in use");
    return typeOf(schema.allOf[0], inset);
  }
  if (schema.oneOf) return union(schema.oneOf.map((one) => typeOf(one, inset)));
  if (schema.enum) return union(schema.enum.map((word) => JSON.stringify(word)));
  switch (schema.type) {
    case "string":
      return "string";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "array":
      if (schema.minItems && schema.minItems === schema.maxItems) return `[${Array(schema.minItems).fill(typeOf(schema.items, inset)).join(", ")}]`;
      return `${grouped(typeOf(schema.items, inset))}[]`;
    case "object":
      return object(schema, inset);
    case undefined:
      return "unknown";
    default:
      throw new Error(`a schema of type ${schema.type}`);
  }
}

function object(schema, inset) {
  const more = schema.additionalProperties;
  if (!schema.properties) return `Record<string, ${more && more !== true ? typeOf(more, inset) : "unknown"}>`;
  const required = new Set(schema.required ?? []);
  const pad = inset + "  ";
  const lines = Object.entries(schema.properties).map(([key, one]) => {
    const said = one.description ? `${pad}/** ${one.description.replaceAll("*/", "* /")} */\n` : "";
    return `${said}${pad}${plain(key)}${required.has(key) ? "" : "?"}: ${typeOf(one, pad)};`;
  });
  if (more) lines.push(`${pad}[further: string]: unknown;`);
  return `{\n${lines.join("\n")}\n${inset}}`;
}

/** The answers of the routes under /troupe/v1 and of those of /api/v1 that say their fields, and all that they are made of. */
export function typesOf(document) {
  const schemas = document.components.schemas;
  const wanted = new Set();
  const add = (ref) => {
    if (wanted.has(ref)) return;
    const schema = schemas[ref.split("/").pop()];
    if (!schema) throw new Error(`there is no ${ref}`);
    if ((schema.type === "object" && !schema.properties && !schema.additionalProperties) || schema.type === "string") return; // it says no fields
    wanted.add(ref);
    refsIn(schema, new Set()).forEach(add);
  };
  for (const methods of Object.values(document.paths))
    for (const one of Object.values(methods)) refsIn(one.responses?.["200"] ?? {}, new Set()).forEach(add);
  const blocks = [...wanted]
    .map((ref) => [nameOf(ref), schemas[ref.split("/").pop()]])
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([name, schema]) => {
      const said = schema.description ? `/** ${schema.description} */\n` : "";
      return schema.type === "object" && schema.properties ? `${said}export interface ${name} ${typeOf(schema, "")}\n` : `${said}export type ${name} = ${typeOf(schema, "")};\n`;
    });
  return `// Made by types.mjs from docs/openapi.json; not to be edited.\n\n${blocks.join("\n")}`;
}

export const made = () => typesOf(JSON.parse(readFileSync(source, "utf8")));

if (process.argv[1] && fileURLToPath(import.meta.url) === process.argv[1]) writeFileSync(target, made());
