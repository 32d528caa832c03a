/** Prompts in the form of the AI SDK, which Mastra has, too: their units, and what is sent of them. */

import { ended, said, sorted, started, textOf } from "./records.mjs";
import type { Told, Unit } from "./told.mjs";

export interface Part {
  type: string;
  text?: string;
  toolCallId?: string;
  toolName?: string;
  input?: unknown;
  output?: { type: string; value?: unknown };
}

export interface Message {
  role: "system" | "user" | "assistant" | "tool";
  content: string | Part[];
}

/** Records messages that are new, and gives those to send. */
export async function sent<T extends Message>(told: Told, messages: T[], begins?: boolean): Promise<T[]> {
  const all = messages.map((message) => units(message));
  const shown = await told.tell(all.flat().map(({ unit }) => unit), begins);
  let place = 0;
  return messages.map((message, number) => {
    const texts = new Map<number, string>();
    for (const { part } of all[number] ?? []) {
      const text = shown.get(place);
      if (text !== undefined && part !== undefined) texts.set(part, text);
      place += 1;
    }
    if (texts.size === 0 || !Array.isArray(message.content)) return message;
    const content = message.content.map((part, at) =>
      texts.has(at) ? { ...part, output: { type: "text", value: texts.get(at) } } : part,
    );
    return { ...message, content };
  });
}

/** The units of a message; an end of a call with the place of its part. */
export function units({ role, content }: Message): { unit: Unit; part?: number }[] {
  const speaker = role === "tool" ? "user" : role;
  const text = typeof content === "string" ? content : textOf(content.filter((part) => part.type === "text"));
  const made: { unit: Unit; part?: number }[] = [];
  const add = (unit: Unit, part?: number): void => {
    const begins = role === "assistant" && made.length === 0;
    made.push({ unit: { ...unit, begins }, ...(part === undefined ? {} : { part }) });
  };
  const parts = typeof content === "string" ? [] : content;
  const others = parts.filter(({ type }) => type === "file" || type === "image");
  if (role !== "tool" && (text !== "" || (role === "user" && made.length === 0))) {
    add({ kind: speaker, says: [text, ...others.map(({ type }) => type)], make: () => said(speaker, text) });
  }
  parts.forEach((part, number) => {
    const id = part.toolCallId ?? "";
    if (part.type === "tool-call") {
      const says = [part.toolName, sorted(part.input)];
      add({ kind: "call", id, says, make: (call) => started(call, part.toolName, part.input) });
    } else if (part.type === "tool-result") {
      const failed = part.output?.type.startsWith("error") === true;
      add({ kind: "end", id, make: (call) => ended(call, part.output?.value, failed) }, number);
    }
  });
  return made;
}
