use super::*;

fn table() -> PriceTable {
    PriceTable::built_in().unwrap()
}

fn at(day: &str) -> Micros {
    let date: jiff::civil::Date = day.parse().unwrap();
    Micros(date.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp().as_microsecond())
}

/// A million tokens of each kind.
fn million() -> Usage {
    Usage {
        input: Some(1_000_000),
        output: Some(1_000_000),
        cache_read: Some(1_000_000),
        cache_write: Some(2_000_000),
        cache_write_long: Some(1_000_000),
        reasoning: None,
        searches: None,
    }
}

/// Dollars for a million tokens: input, read, write for minutes, write for an hour, output.
fn list(model: &str, day: &str) -> Option<[f64; 5]> {
    // Each by itself, so that no request is a long one.
    let table = table();
    let price = table.price(model, Some(at(day)))?;
    let of = |usage: Usage| price.dollars(&usage, None).map(|dollars| dollars.total() * 1000.0);
    let thousand = Some(1000);
    let none = Usage::default();
    let all = [
        Usage { input: thousand, ..none },
        Usage { cache_read: thousand, ..none },
        Usage { cache_write: thousand, ..none },
        Usage { cache_write: thousand, cache_write_long: thousand, ..none },
        Usage { output: thousand, ..none },
    ];
    Some(all.map(|usage| (of(usage).unwrap() * 1e6).round() / 1e6))
}

#[test]
fn prices_are_those_of_the_lists() {
    for (model, day, prices) in [
        ("claude-fable-5-1", "2026-11-01", [10.0, 0.25, 12.5, 20.0, 50.0]),
        ("claude-opus-5-5", "2026-11-01", [4.0, 0.2, 5.0, 8.0, 20.0]),
        ("claude-opus-4-5-20251101", "2026-02-01", [5.0, 0.5, 6.25, 10.0, 25.0]),
        ("claude-sonnet-4-5-20250929", "2026-02-01", [3.0, 0.3, 3.75, 6.0, 15.0]),
        ("claude-sonnet-5-5", "2026-10-06", [2.0, 0.2, 2.5, 4.0, 10.0]),
        ("claude-sonnet-5-5", "2026-10-07", [2.0, 0.1, 2.5, 4.0, 10.0]),
        ("claude-3-haiku-20240307", "2026-02-01", [0.25, 0.03, 0.3, 0.5, 1.25]),
        ("gpt-5.4", "2026-04-01", [2.5, 0.25, 2.5, 2.5, 15.0]),
        ("gpt-6.1-sol", "2026-11-01", [2.0, 0.1, 2.5, 2.5, 10.0]),
        ("gemini-3.1-pro-preview", "2026-05-01", [2.0, 0.2, 2.0, 2.0, 12.0]),
        ("gemini-2.5-pro-preview-05-06", "2026-05-01", [1.25, 0.125, 1.25, 1.25, 10.0]),
    ] {
        assert_eq!(list(model, day), Some(prices), "{model} {day}");
    }
}

#[test]
fn one_model_goes_by_many_names_and_a_new_one_by_none() {
    let table = table();
    let known = table.price("claude-opus-4-5", None).unwrap();
    for name in [
        "claude-opus-4.5",
        "anthropic/claude-opus-4.5",
        "us.anthropic.claude-opus-4-5-20251101-v1:0",
        "claude-opus-4-5@20251101",
        "Claude-Opus-4-5[1m]",
        "claude-opus-4-5-latest",
    ] {
        assert_eq!(table.price(name, None), Some(known), "{name}");
    }
    for name in ["claude-opus-9", "claude-opus-4-5-fast", "claude-opus", "gpt-5.3-codex-spark", "", "-"] {
        assert_eq!(table.price(name, None), None, "{name}");
    }
}

#[test]
fn long_requests_and_service_tiers_have_their_own_prices() {
    let table = table();
    let price = table.price("claude-sonnet-4-5", None).unwrap();
    let dollars = |usage: &Usage, tier| price.dollars(usage, tier).map(|it| (it.total() * 100.0).round());
    assert_eq!(dollars(&million(), None), Some(600.0 + 60.0 + 750.0 + 1200.0 + 2250.0));
    assert_eq!(dollars(&million(), Some("standard")), dollars(&million(), None));
    assert_eq!(dollars(&million(), Some("batch")), Some(2430.0));
    assert_eq!(dollars(&million(), Some("a tier to come")), None);
}

#[test]
fn what_was_seen_before_is_read_as_far_as_the_request_read() {
    let table = table();
    let price = table.price("claude-opus-4-5", None).unwrap();
    let usage = Usage { cache_read: Some(1000), cache_write: Some(1000), ..Usage::default() };
    let seen =
        |tokens, usage: &Usage| format!("{:.0}", price.seen_before(tokens, usage, None).unwrap() * 1e6);
    assert_eq!(seen(1000, &usage), "500");
    assert_eq!(seen(1500, &usage), "3625");
    assert_eq!(seen(9000, &usage), "6750", "no more than was sent");
    let long = Usage { cache_write: Some(1000), cache_write_long: Some(1000), ..Usage::default() };
    assert_eq!(seen(100, &long), "1000");
    let plain = Usage { input: Some(1000), ..Usage::default() };
    assert_eq!(seen(100, &plain), "500");
}

#[test]
fn a_file_of_the_users_goes_first_model_by_model() {
    let own = "checked = \"2026-11-22\"\n[provider.me]\nsource = \"my contract\"\nread = 0.5\nwrite = 1.0\n\
        ttl_seconds = 60\n[[model]]\nprovider = \"me\"\nnames = [\"claude-opus-4.5\", \"mine\"]\ninput = 1.0\noutput = 2.0\n";
    let both = table().with(PriceTable::from_toml(own).unwrap());
    for name in ["mine", "claude-opus-4-5"] {
        assert_eq!(both.price(name, None).unwrap().source(), "my contract");
    }
    assert!(both.price("claude-opus-4-6", None).unwrap().source().contains("claude"));
    let wrong = |from: &str, to: &str| PriceTable::from_toml(&own.replace(from, to)).unwrap_err().to_string();
    for (from, to, says) in [
        ("input = 1.0", "input = -1.0", "input is -1"),
        ("input = 1.0", "input = nan", "input is NaN"),
        ("input = 1.0\n", "", "input"),
        ("output = 2.0", "output = 2.0\nfrom = \"soon\"", "\"soon\" is no day"),
        ("provider = \"me\"", "provider = \"you\"", "\"you\""),
        ("ttl_seconds = 60", "ttl = 60", "ttl"),
    ] {
        assert!(wrong(from, to).contains(says), "{}", wrong(from, to));
    }
}

#[test]
fn the_planner_takes_the_same_prices() {
    let table = table();
    let of = |model, long| {
        let prices = table.price(model, None).unwrap().relative(long);
        assert!(prices.checked().is_ok());
        (prices.read, prices.write, prices.ttl_seconds)
    };
    assert_eq!(of("claude-opus-5-5", false), (0.05, 1.25, 300));
    assert_eq!(of("claude-opus-5-5", true), (0.05, 2.0, 3600));
    assert_eq!(of("claude-fable-5-2", false), (0.025, 1.25, 300));
    assert_eq!(of("gpt-6.1-sol", true), (0.05, 1.25, 1800));
    assert_eq!(of("gpt-5.4", false), (0.1, 1.0, 600));
}

#[test]
fn a_model_counts_tokens_as_its_provider_s_do_unless_it_says_otherwise() {
    let table = |provider: &str, model: &str| {
        PriceTable::from_toml(&format!(
            "checked = \"today\"\n[provider.p]\nsource = \"s\"\nread = 0.1\nwrite = 1.0\nttl_seconds = 1\n{provider}\n\
             [[model]]\nprovider = \"p\"\nnames = [\"m\"]\ninput = 1.0\noutput = 1.0\n{model}\n"
        ))
    };
    let sizes = |provider, model| table(provider, model).unwrap().price("m", None).unwrap().sizes();
    assert_eq!(sizes("", ""), RequestLengths::default());
    assert_eq!(sizes("tokens = 1.5\nstep_tokens = 9", ""), RequestLengths { tokens: 1.5, step_tokens: 9 });
    assert_eq!(
        sizes("tokens = 1.5\nstep_tokens = 9", "tokens = 1"),
        RequestLengths { tokens: 1.0, step_tokens: 9 }
    );
    for wrong in ["tokens = 0.0", "tokens = -1.0", "tokens = nan", "tokens = inf"] {
        let error = table("", wrong).unwrap_err().to_string();
        assert!(error.starts_with("m: tokens is "), "{wrong}: {error}");
    }
    assert!(table("", "step_tokens = -1").is_err());
    let own = super::tests::table();
    assert_eq!(
        own.price("claude-opus-5-5", None).unwrap().sizes(),
        RequestLengths { tokens: 1.12, step_tokens: 100 }
    );
    assert_eq!(own.price("gpt-5.4", None).unwrap().sizes(), RequestLengths::default());
}

/// Any `-vN` at the end of a name was taken for the version that Bedrock writes there: two models of one maker had one price.
#[test]
fn a_version_that_is_part_of_a_name_stays() {
    for (name, expected) in [
        ("deepseek-v4", "deepseek-v4"),
        ("deepseek/deepseek-v3", "deepseek-v3"),
        ("deepseek-v4:free", "deepseek-v4"),
        ("anthropic.claude-opus-4-5-20251101-v1", "claude-opus-4-5-20251101"),
        ("meta.llama3-v1:0", "meta-llama3"),
    ] {
        assert_eq!(plain(name), expected, "{name}");
    }
}
