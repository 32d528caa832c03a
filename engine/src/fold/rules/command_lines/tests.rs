use super::*;

fn log(count: usize, telling: &[usize]) -> String {
    let line = |n: usize| {
        let told = if telling.contains(&n) { "Error: it broke" } else { "all went well" };
        format!("[{n}] compiling part {n} of the whole, {told}")
    };
    (0..count).map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_log_keeps_its_ends_and_its_failures() {
    for telling in [&[][..], &[150], &[40, 150, 151]] {
        let text = log(300, telling);
        let short = TellingLines.cut(text.as_bytes()).unwrap();
        assert!(
            short.starts_with("[0] ") && short.ends_with("all went well") && short.contains("\n[299] "),
            "{short}"
        );
        assert!(u64::from(estimate(short.as_bytes())) <= TOKENS_MAX, "{short}");
        for n in [40, 150, 151, 152] {
            assert_eq!(short.contains(&format!("\n[{n}] ")), telling.contains(&n), "{n} in {short}");
        }
        let mark = short.lines().find(|line| line.starts_with("[...")).unwrap();
        let left_out = 300 - (short.lines().count() - 1);
        assert_eq!(
            mark,
            format!("[... {left_out} more lines left out: restore it, or run the command again]")
        );
    }
}

#[test]
fn too_many_failures_keep_the_first_ones_and_a_short_text_stays() {
    let all: Vec<usize> = (0..300).collect();
    let short = TellingLines.cut(log(300, &all).as_bytes()).unwrap();
    assert!(u64::from(estimate(short.as_bytes())) <= TOKENS_MAX);
    // Nothing is to be left out.
    for whole in ["", "a\nb", &log(8, &[])] {
        assert_eq!(TellingLines.cut(whole.as_bytes()), None, "{whole}");
    }
}
