use super::*;

/// Thursday, 2026-03-12, 10:00 in Berlin (9:00 UTC).
fn now() -> Micros {
    Micros("2026-03-12T09:00:00Z".parse::<Timestamp>().unwrap().as_microsecond())
}

fn berlin() -> TimeZone {
    TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
}

fn shown(micros: Micros) -> String {
    let time = Timestamp::from_microsecond(micros.get()).unwrap().to_zoned(berlin());
    let text = time.strftime("%Y-%m-%d %H:%M:%S.%6f").to_string();
    text.replace(".000000", "").replace(".999999", "~")
}

/// `at '2020-01-01 00:00'` threw the date away and told of today: a reader of times of day was asked before a reader of dates, and
/// took the part that it understood. Now every word counts, in the zone of the place.
#[test]
fn times_are_read_as_people_type_them() {
    for (text, from, to) in [
        ("2020-01-01 00:00", "2020-01-01 00:00:00", "2020-01-01 00:00:00"),
        ("2026-03-12 09:09:32", "2026-03-12 09:09:32", "2026-03-12 09:09:32~"),
        ("2026-03-12T09:09:32", "2026-03-12 09:09:32", "2026-03-12 09:09:32~"),
        ("2026-03-12T09:09:32.5", "2026-03-12 09:09:32.500000", "2026-03-12 09:09:32.500000"),
        ("2026-03-12T09:09:32Z", "2026-03-12 10:09:32", "2026-03-12 10:09:32~"),
        ("2026-03-12t09:09z", "2026-03-12 10:09:00", "2026-03-12 10:09:00"),
        ("2026-03-12 09:09+03:00", "2026-03-12 07:09:00", "2026-03-12 07:09:00"),
        ("2026-03-12 09:09 +0300", "2026-03-12 07:09:00", "2026-03-12 07:09:00"),
        ("2026-03-12 09:09 UTC", "2026-03-12 10:09:00", "2026-03-12 10:09:00"),
        ("2026-03-12 09:09:00-05", "2026-03-12 15:09:00", "2026-03-12 15:09:00~"),
        ("20260312T090932Z", "2026-03-12 10:09:32", "2026-03-12 10:09:32~"),
        ("2026/03/12 9:09", "2026-03-12 09:09:00", "2026-03-12 09:09:00"),
        ("2026-07-12 09:09", "2026-07-12 09:09:00", "2026-07-12 09:09:00"),
        ("2026-03-12", "2026-03-12 00:00:00", "2026-03-12 23:59:59~"),
        ("2026-03-12Z", "2026-03-12 01:00:00", "2026-03-13 00:59:59~"),
        ("2026-02", "2026-02-01 00:00:00", "2026-02-28 23:59:59~"),
        ("today", "2026-03-12 00:00:00", "2026-03-12 23:59:59~"),
        ("Yesterday", "2026-03-11 00:00:00", "2026-03-11 23:59:59~"),
        ("yesterday 14:00", "2026-03-11 14:00:00", "2026-03-11 14:00:00"),
        ("yesterday at 2pm", "2026-03-11 14:00:00", "2026-03-11 14:00:00"),
        ("14:05 yesterday", "2026-03-11 14:05:00", "2026-03-11 14:05:00"),
        ("yesterday noon", "2026-03-11 12:00:00", "2026-03-11 12:00:00"),
        ("14:05", "2026-03-12 14:05:00", "2026-03-12 14:05:00"),
        ("14:05:09", "2026-03-12 14:05:09", "2026-03-12 14:05:09~"),
        ("8 am", "2026-03-12 08:00:00", "2026-03-12 08:00:00"),
        ("12:30am", "2026-03-12 00:30:00", "2026-03-12 00:30:00"),
        ("08:00Z", "2026-03-12 09:00:00", "2026-03-12 09:00:00"),
        ("Thursday", "2026-03-12 00:00:00", "2026-03-12 23:59:59~"),
        ("Thursday 9:00", "2026-03-12 09:00:00", "2026-03-12 09:00:00"),
        ("Thursday 18:00", "2026-03-05 18:00:00", "2026-03-05 18:00:00"),
        ("last Thursday", "2026-03-05 00:00:00", "2026-03-05 23:59:59~"),
        ("last Tuesday", "2026-03-10 00:00:00", "2026-03-10 23:59:59~"),
        ("tue 9:00", "2026-03-10 09:00:00", "2026-03-10 09:00:00"),
        ("last week", "2026-03-02 00:00:00", "2026-03-08 23:59:59~"),
        ("this week", "2026-03-09 00:00:00", "2026-03-15 23:59:59~"),
        ("last month", "2026-02-01 00:00:00", "2026-02-28 23:59:59~"),
        ("last year", "2025-01-01 00:00:00", "2025-12-31 23:59:59~"),
        ("Jul 29", "2025-07-29 00:00:00", "2025-07-29 23:59:59~"),
        ("29 Jul", "2025-07-29 00:00:00", "2025-07-29 23:59:59~"),
        ("29 Jul 2025", "2025-07-29 00:00:00", "2025-07-29 23:59:59~"),
        ("July 29th, 2025 14:05", "2025-07-29 14:05:00", "2025-07-29 14:05:00"),
        ("29-Jul-2024", "2024-07-29 00:00:00", "2024-07-29 23:59:59~"),
        ("1 March", "2026-03-01 00:00:00", "2026-03-01 23:59:59~"),
        ("Feb 29", "2024-02-29 00:00:00", "2024-02-29 23:59:59~"),
        ("Jul 2025", "2025-07-01 00:00:00", "2025-07-31 23:59:59~"),
        ("December", "2025-12-01 00:00:00", "2025-12-31 23:59:59~"),
        ("Tue, 29 Jul 2025 14:05:09 +0000", "2025-07-29 16:05:09", "2025-07-29 16:05:09~"),
        ("Tue Jul 29 14:05:09 2025", "2025-07-29 14:05:09", "2025-07-29 14:05:09~"),
        ("10m ago", "2026-03-12 09:50:00", "2026-03-12 09:50:00"),
        ("10m", "2026-03-12 09:50:00", "2026-03-12 09:50:00"),
        ("2 days ago", "2026-03-10 10:00:00", "2026-03-10 10:00:00"),
        ("2d", "2026-03-10 10:00:00", "2026-03-10 10:00:00"),
        ("an hour ago", "2026-03-12 09:00:00", "2026-03-12 09:00:00"),
        ("a week ago", "2026-03-05 10:00:00", "2026-03-05 10:00:00"),
        ("1 day and 2 hours ago", "2026-03-11 08:00:00", "2026-03-11 08:00:00"),
        ("1h30m ago", "2026-03-12 08:30:00", "2026-03-12 08:30:00"),
        ("3 months ago", "2025-12-12 10:00:00", "2025-12-12 10:00:00"),
        ("now", "2026-03-12 10:00:00", "2026-03-12 10:00:00"),
        // The night in which clocks go on has no 2:30; the day has 23 hours.
        ("2026-03-29 02:30", "2026-03-29 03:30:00", "2026-03-29 03:30:00"),
        ("2026-03-29", "2026-03-29 00:00:00", "2026-03-29 23:59:59~"),
    ] {
        let read = read(text, now(), &Ok(berlin())).unwrap_or_else(|why| panic!("{text:?}: {why}"));
        assert_eq!((shown(read.from), shown(read.to)), (from.to_owned(), to.to_owned()), "{text}");
    }
}

#[test]
fn what_is_not_understood_or_could_mean_two_things_is_refused() {
    for (text, why) in [
        ("", ""),
        ("soon", "\"soon\" is not known"),
        ("2026", "a year alone is no day"),
        (
            "12/03/2026",
            "which number is the day and which the month is not said; write year-month-day, as in 2026-01-31",
        ),
        (
            "13/02/2026",
            "which number is the day and which the month is not said; write year-month-day, as in 2026-01-31",
        ),
        (
            "03-12",
            "which number is the day and which the month is not said; write year-month-day, as in 2026-01-31",
        ),
        ("2026-02-30", "there is no day 2026-02-30"),
        ("2026-03-12 25:00", "there is no time 25:00:00"),
        ("2026-03-12 09:09 CEST2", "\"cest2\" is not known"),
        ("2026-03-12 09:09:32 10:00", "it names a time of day twice"),
        ("2026-03-12 yesterday", "it names a day twice"),
        ("yesterday soon", "\"soon\" is not known"),
        ("yesterday 14", "it names a day twice"),
        ("Mon 29 Jul 2025", "2025-07-29 is a tuesday"),
        ("last fortnight", "last or this \"fortnight\" is not known"),
        ("last week 14:00", "a week, month or year has no day and time of its own"),
        ("31", "the day 31 of which month?"),
        ("13 pm", "there is no 13 pm"),
        ("2 days hence", "\"days\" is not known"),
        ("nonsense ago", "\"nonsense\" is no length of time"),
        ("-2d ago", "\"-2d\" is no length of time"),
        ("19000 years ago", "that is before all time"),
        ("2026-03-12 9:9", "\"9:9\" is no time of day"),
        ("14:05 Nowhere/Town", "there is no time zone \"nowhere/town\""),
        ("utc", "\"utc\" says a zone, and no time before it"),
    ] {
        assert_eq!(read(text, now(), &Ok(berlin())), Err(why.to_owned()), "{text:?}");
    }
}

/// `TZ=America/New_York` silently meant UTC where no table of zones has that name. A place whose zone is not known has no local
/// time; a text that needs no zone is read as before.
#[test]
fn a_place_whose_zone_is_not_known_has_no_local_time() {
    let unknown = Err("no such zone".to_owned());
    for text in ["2026-03-12 09:09", "yesterday", "2 days ago", "last week", "1d 2h"] {
        assert_eq!(read(text, now(), &unknown), Err("no such zone".to_owned()), "{text}");
    }
    for text in
        ["2026-03-12 09:09Z", "2026-03-12T09:09:32+01:00", "yesterday 14:00 UTC", "10m ago", "1h30m", "now"]
    {
        assert_eq!(
            read(text, now(), &unknown).map(|it| it.from),
            read(text, now(), &Ok(berlin())).map(|it| it.from)
        );
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "[a-z0-9:+./ \\-\\[\\]TZé]{0,30}") {
        if let Ok(read) = read(&text, now(), &Ok(berlin())) {
            proptest::prop_assert!(read.from <= read.to);
        }
    }

    #[test]
    fn no_words_make_the_reader_panic(words in proptest::collection::vec(proptest::sample::select(vec![
        "last", "this", "week", "tuesday", "jul", "29", "2025", "14:05", "pm", "ago", "2", "days", "2d", "z", "+02:00",
        "2026-03-12", "at", "yesterday", "utc", "9999-12-31", "0001-01-01", "noon", "31st",
    ]), 0..6)) {
        if let Ok(read) = read(&words.join(" "), now(), &Ok(berlin())) {
            proptest::prop_assert!(read.from <= read.to);
        }
    }
}
