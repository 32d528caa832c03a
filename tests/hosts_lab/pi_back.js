// An extension for Pi: `/back` goes to the end of the session's first turn.
export default function (pi) {
  pi.registerCommand("back", {
    description: "Goes back to the end of the first turn",
    handler: async (_words, ctx) => {
      const ends = ctx.sessionManager
        .getEntries()
        .filter((entry) => entry.type === "message" && entry.message.role === "assistant" && entry.message.stopReason === "stop");
      await ctx.navigateTree(ends[0].id, { summarize: false });
    },
  });
}
