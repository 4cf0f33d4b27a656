import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { made, target, typesOf } from "./types.mjs";

test("src/api_types.ts is what docs/openapi.json says; `node types.mjs` writes it", () => expect(readFileSync(target, "utf8")).toBe(made()));

describe("types of schemas", () => {
  const of = (schema) => typesOf({ paths: { "/x": { get: { responses: { 200: { $ref: "#/components/schemas/v1X" } } } } }, components: { schemas: { v1X: schema, Y: { type: "object", properties: {} } } } });
  const fields = (properties, required = []) => of({ type: "object", properties, required });
  test("what may be missing, and what may be null", () => {
    expect(fields({ a: { type: "integer" }, b: { type: "string", nullable: true } }, ["b"])).toContain("export interface X {\n  a?: number;\n  b: string | null;\n}");
    expect(fields({ a: { allOf: [{ $ref: "#/components/schemas/Y" }], nullable: true, description: "why" } }, ["a"])).toContain("  /** why */\n  a: Y | null;");
  });
  test("lists and maps of unions", () => {
    const either = { oneOf: [{ type: "number" }, { type: "string", enum: ["NaN"] }] };
    expect(fields({ a: { type: "array", items: either }, b: { type: "object", additionalProperties: either } })).toContain('  a?: (number | "NaN")[];\n  b?: Record<string, number | "NaN">;');
    expect(fields({ a: { type: "array", items: { type: "array", items: { type: "integer" } } } })).toContain("a?: number[][];");
  });
  test("a list of a fixed length is a tuple", () => expect(fields({ a: { type: "array", items: { type: "integer" }, minItems: 2, maxItems: 2 } })).toContain("a?: [number, number];"));
  test("a schema that is not there is a fault", () => expect(() => fields({ a: { $ref: "#/components/schemas/Z" } })).toThrow("there is no"));
  test("a form that is not known is a fault", () => expect(() => fields({ a: { type: "null" } })).toThrow("type null"));
});
