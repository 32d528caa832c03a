// Prints the name of this platform, as `lib/native.ts` spells it.
const { platform, arch } = process;
const libc = process.report?.getReport().header?.glibcVersionRuntime ? "gnu" : "musl";
console.log(platform === "linux" ? `linux-${arch}-${libc}` : `${platform}-${arch}`);
