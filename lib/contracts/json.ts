/** The value domain of everything stored: RFC 8259 JSON, as JavaScript values. */
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;

export interface JsonObject {
  [key: string]: JsonValue;
}
