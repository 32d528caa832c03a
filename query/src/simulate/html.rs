//! The picture: one page that needs nothing else, and may load nothing.
//!
//! The context over the requests, stacked: the tokens read from the cache, the tokens written, and above them the tokens that doing
//! nothing would have sent; rebases are marked. Plain SVG, no script, no font, no address of anything.

use std::fmt::Write as _;

use super::{Outcome, Row};
use crate::cost::float;
use crate::export::html_text as escaped;

/// A session under one policy.
#[derive(Debug)]
pub struct Chart<'o> {
    /// Its title.
    pub title: String,
    /// The outcome that is shown.
    pub outcome: &'o Outcome,
    /// The outcome of doing nothing.
    pub nothing: &'o Outcome,
}

const WIDTH: f64 = 920.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 12.0;

const STYLE: &str = "body{font:14px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:62rem;color:#222;background:#fff}\
table{border-collapse:collapse}td,th{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #ddd}\
td:first-child,th:first-child,td:nth-child(2),th:nth-child(2){text-align:left}\
.nothing{fill:#e6e6e6}.write{fill:#e08a3c}.read{fill:#5b8fc7}.rebase{stroke:#b3261e;stroke-width:1}\
.axis{stroke:#888;stroke-width:1}text{font-size:11px;fill:#555}figure{margin:2rem 0}";

/// The page.
pub fn html(title: &str, conditions: &str, rows: &[Row], charts: &[Chart<'_>]) -> String {
    let mut out = String::new();
    let title = escaped(title);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<p>{}</p>\n",
        escaped(conditions)
    );
    out.push_str(
        "<table>\n<tr><th>policy</th><th>mode</th><th>price</th><th>with fetches</th><th>tokens</th>\
         <th>peak</th><th>rewrites</th><th>read from cache</th><th>needed again</th></tr>\n",
    );
    for row in rows {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{:.3}</td><td>{:.3}</td><td>{:.3}</td><td>{}</td><td>{}</td>\
             <td>{:.1} %</td><td>{:.1} %</td></tr>",
            escaped(&row.policy),
            row.mode,
            row.price_ratio,
            row.price_ratio_with_fetches,
            row.tokens_ratio,
            row.peak_tokens,
            row.rewrites,
            row.cache_read_share * 100.0,
            row.needed_again * 100.0
        );
    }
    out.push_str("</table>\n");
    for chart in charts {
        out.push_str(&figure(chart));
    }
    out.push_str("</body>\n</html>\n");
    out
}

fn figure(chart: &Chart<'_>) -> String {
    let count = chart.outcome.requests.len().max(chart.nothing.requests.len()).max(1);
    let requests = |outcome: &Outcome| outcome.requests.iter().map(|request| request.tokens).max();
    let peak = requests(chart.outcome).max(requests(chart.nothing)).unwrap_or(0).max(1);
    let step = (WIDTH - LEFT) / float(count as u64);
    let x = |place: usize| LEFT + step * float(place as u64);
    let height = |tokens: u64| HEIGHT * float(tokens) / float(peak);
    let area = |values: &mut dyn Iterator<Item = u64>| {
        let mut path = format!("M{LEFT:.1} {:.1}", TOP + HEIGHT);
        let mut end = LEFT;
        for (place, tokens) in values.enumerate() {
            let y = TOP + HEIGHT - height(tokens);
            end = x(place + 1);
            let _ = write!(path, "L{:.1} {y:.1}L{end:.1} {y:.1}", x(place));
        }
        let _ = write!(path, "L{end:.1} {:.1}Z", TOP + HEIGHT);
        path
    };
    let mut out = String::new();
    let _ = write!(
        out,
        "<figure>\n<figcaption>{}</figcaption>\n<svg viewBox=\"0 0 {:.0} {:.0}\" role=\"img\">\n",
        escaped(&chart.title),
        WIDTH + 10.0,
        TOP + HEIGHT + 40.0
    );
    let nothing = area(&mut chart.nothing.requests.iter().map(|request| request.tokens));
    let sent = area(&mut chart.outcome.requests.iter().map(|request| request.tokens));
    let read = area(&mut chart.outcome.requests.iter().map(|request| request.read));
    let _ = write!(
        out,
        "<path class=\"nothing\" d=\"{nothing}\"/>\n<path class=\"write\" d=\"{sent}\"/>\n\
         <path class=\"read\" d=\"{read}\"/>\n"
    );
    for (place, request) in chart.outcome.requests.iter().enumerate().filter(|(_, it)| it.rewritten) {
        let at = x(place);
        let _ = writeln!(
            out,
            "<line class=\"rebase\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{:.1}\" y2=\"{TOP:.1}\">\
             <title>turn {}: rebase{}</title></line>",
            TOP + HEIGHT,
            request.turn,
            if request.cold { ", cold" } else { "" }
        );
    }
    let base = TOP + HEIGHT;
    let _ = write!(
        out,
        "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{base}\" y2=\"{base}\"/>\n\
         <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{peak}</text>\n\
         <text x=\"{:.0}\" y=\"{base:.0}\" text-anchor=\"end\">0 tokens</text>\n\
         <text x=\"{LEFT}\" y=\"{:.0}\">request 1</text>\n\
         <text x=\"{WIDTH}\" y=\"{:.0}\" text-anchor=\"end\">{count}</text>\n\
         <text x=\"{LEFT}\" y=\"{:.0}\">blue: read from the cache; orange: written; grey: doing nothing; \
         red: what was sent before is changed</text>\n</svg>\n</figure>\n",
        LEFT - 6.0,
        TOP + 10.0,
        LEFT - 6.0,
        base + 16.0,
        base + 16.0,
        base + 32.0,
    );
    out
}
