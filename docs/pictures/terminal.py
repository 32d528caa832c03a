"""Draws what a terminal shows as SVG: lines on standard input, with the terminal's codes for bold, dim and colours."""
import html
import re
import sys

COLOURS = {31: "#ff8a80", 32: "#5cc283", 33: "#e2a13c", 34: "#6cb2ff", 35: "#d6a4ff", 36: "#67d4d4", 90: "#98a3b1"}
COLUMN, LINE = 7.83, 18


def spans(line):
    """Parts of a line with their styles."""
    style = {}
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        code = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
        if not code:
            if part:
                yield part, " ".join('%s="%s"' % pair for pair in style.items())
            continue
        for number in (int(digits or 0) for digits in code[1].split(";")):
            if number == 0:
                style = {}
            elif number == 1:
                style["font-weight"] = "bold"
            elif number == 2:
                style["fill"] = "#98a3b1"
            elif number in COLOURS or number - 60 in COLOURS:
                style["fill"] = COLOURS.get(number) or COLOURS[number - 60]


def main():
    lines = [re.sub(r"\x1b\]8;[^\x1b]*\x1b\\", "", line.rstrip("\n")) for line in sys.stdin]
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    width = max(map(len, plain)) * COLUMN + 32
    height = len(lines) * LINE + 24
    print('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d">' % (width, height, width))
    print('<rect width="100%" height="100%" rx="8" fill="#14171c"/>')
    print('<g font-family="ui-monospace,Menlo,Consolas,monospace" font-size="13" fill="#e3e7ec">')
    for number, line in enumerate(lines):
        column = 0
        for text, style in spans(line):
            x, y = 16 + column * COLUMN, 26 + number * LINE
            print('<text x="%.1f" y="%d" textLength="%.1f" %s>%s</text>' % (x, y, len(text) * COLUMN, style, html.escape(text.replace(" ", "\u00a0"))))
            column += len(text)
    print("</g>\n</svg>")


if __name__ == "__main__":
    main()
