use expect_test::expect;
use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn criteria_are_met_by_one_longer_word_at_a_word_start() {
    for (criterion, summary, met) in [
        ("Tests pass", "all TESTS are green", true),
        ("Tests pass", "it passes now", true), // `pass` begins `passes`
        ("Tests pass", "greatest bypass", false),
        ("Benchmark recorded", "All tests are green", false),
        ("use it", "we use it now", true), // no word is longer than 3: the whole criterion
        ("use it", "we use that", false),
        ("use it", "reuse it", false),
        (" fix  ", "fix", true),
        ("", "anything", true),
        ("ÉCRIRE", "écrire", true),
        ("abcd", "1abcd", false),
        ("abcd", "-abcd", true),
        ("abcd", "xabcd abcd", true),
        ("a-a-a-a", "xa-a-a-a-a-a", true), // the second of two that overlap
        ("-a-a", "x-a-a-a", false),
        ("word", "", false),
    ] {
        let requirements = Requirements { criteria: vec![criterion.to_owned()], ..Requirements::default() };
        let validated = validate(&requirements, summary);
        assert_eq!(validated.is_valid, met, "{criterion:?} in {summary:?}");
    }
}

fn show(task: &Value, summary: &str) -> String {
    let validated = validate(&Requirements::of(task), summary);
    format!(
        "{} {:.2} {:?} {:?}\n{}\n",
        validated.is_valid,
        validated.score,
        validated.evidence_found,
        validated.missing_criteria,
        validated.annotated_summary.strip_prefix(summary).unwrap().trim_start()
    )
}

#[test]
fn evidence_is_one_more_check() {
    let grounding = json!({"evidence_required": true, "overlay_hints": ["O3", "O4"]});
    let record = |citations: Value, overlays: Value, confidence: &str| {
        json!({"grounding": grounding, "grounding_evidence":
            {"citations": citations, "overlays_consulted": overlays, "grounding_confidence": confidence}})
    };
    let shown: String = [
        (json!({}), "x"),
        (json!({"grounding": {"evidence_required": false}, "grounding_evidence": {}}), "x"),
        (record(json!([1]), json!(["o4"]), "high"), "x"),
        (record(json!([1]), json!(["O1"]), "high"), "x"),
        (record(json!([]), json!(["O1"]), "LOW"), "x"),
        (record(json!([1]), json!(["O3"]), "low"), "x"),
        (json!({"grounding": grounding}), "Source O3, similarity .9"),
        (json!({"grounding": grounding}), "Source o3, similarity .9"),
        (json!({"grounding": grounding, "grounding_evidence": "[O4], score 1"}), "x"),
        (json!({"grounding": {"evidence_required": true}}), "see [o7]"),
        (
            json!({"grounding": {"evidence_required": true}, "acceptance_criteria": ["alpha", "beta"]}),
            "alpha",
        ),
    ]
    .iter()
    .map(|(task, summary)| show(task, summary))
    .collect();
    expect![[r#"
        true 1.00 None []
        ✅ [Sigma Validation] All criteria met (Score: 1.00)
        true 1.00 None []
        ✅ [Sigma Validation] All criteria met (Score: 1.00)
        true 1.00 Some(true) []
        ✅ [Sigma Validation] All criteria met (Score: 1.00)
        false 0.00 Some(false) ["Required grounding evidence: None of the requested overlays (O3, O4) were consulted"]
        ⚠️ [Sigma Validation] Missing criteria: Required grounding evidence: None of the requested overlays (O3, O4) were consulted
        false 0.00 Some(false) ["Required grounding evidence: No citations provided", "Required grounding evidence: None of the requested overlays (O3, O4) were consulted", "Warning: Grounding confidence is low (< 0.7)"]
        ⚠️ [Sigma Validation] Missing criteria: Required grounding evidence: No citations provided, Required grounding evidence: None of the requested overlays (O3, O4) were consulted, Warning: Grounding confidence is low (< 0.7)
        true 1.00 Some(true) ["Warning: Grounding confidence is low (< 0.7)"]
        ✅ [Sigma Validation] All criteria met (Score: 1.00)
        true 1.00 Some(true) []
        ✅ [Sigma Validation] All criteria met (Score: 1.00)
        false 0.00 Some(false) ["None of the requested overlays (O3, O4) found in evidence (string check)", "Required grounding evidence/citations missing (structured object not found)"]
        ⚠️ [Sigma Validation] Missing criteria: None of the requested overlays (O3, O4) found in evidence (string check), Required grounding evidence/citations missing (structured object not found)
        true 1.00 Some(true) []
        ✅ [Sigma Validation] All criteria met (Score: 1.00)
        false 0.00 Some(false) ["Required grounding evidence/citations missing (structured object not found)"]
        ⚠️ [Sigma Validation] Missing criteria: Required grounding evidence/citations missing (structured object not found)
        false 0.33 Some(false) ["beta", "Required grounding evidence/citations missing (structured object not found)"]
        ⚠️ [Sigma Validation] Missing criteria: beta, Required grounding evidence/citations missing (structured object not found)
    "#]].assert_eq(&shown);
}

#[test]
fn requirements_are_read_leniently() {
    let odd = json!({"acceptance_criteria": "one text", "grounding": [1], "grounding_evidence": 7});
    assert_eq!(
        Requirements::of(&odd),
        Requirements { criteria: vec!["one text".to_owned()], ..Requirements::default() }
    );
    assert_eq!(Requirements::of(&json!("text")), Requirements::default());
    assert_eq!(Requirements::of(&json!({"acceptance_criteria": [1, null]})).criteria, ["1", "null"]);
}

#[test]
fn scores_are_recorded_in_hundredths() {
    let criteria = ["alpha", "beta", "gamma"].map(str::to_owned).to_vec();
    let requirements = Requirements { criteria, ..Requirements::default() };
    let validation = validate(&requirements, "alpha and beta").to_event();
    // Evidence was not asked for, so it was not looked for.
    assert_eq!(validation, Validation { valid: false, score: 67, evidence_found: None });
}

proptest! {
    /// The score is the share of criteria that are not missing, validity its threshold, and more words never hurt.
    #[test]
    fn score_and_validity_agree(
        criteria in prop::collection::vec("[a-d]{2,5}( [a-d]{2,5})?", 0..12),
        words in prop::collection::vec("[a-d]{2,5}", 0..8),
        more in "[a-d]{2,5}",
    ) {
        let count = criteria.len();
        let requirements = Requirements { criteria, ..Requirements::default() };
        let summary = words.join(" ");
        let validated = validate(&requirements, &summary);
        let met = count - validated.missing_criteria.len();
        prop_assert_eq!(validated.is_valid, met * 100 >= count * 70);
        prop_assert!((0.0..=1.0).contains(&validated.score));
        prop_assert!(validated.annotated_summary.starts_with(&(summary.clone() + "\n\n")));
        let longer = [summary, more].join(" ");
        prop_assert!(validate(&requirements, &longer).score >= validated.score);
    }

    /// Any text is judged without a panic.
    #[test]
    fn any_text_is_judged(criteria in prop::collection::vec(".*", 0..4), summary in ".*") {
        let requirements = Requirements { criteria, evidence_required: true, ..Requirements::default() };
        let annotated = validate(&requirements, &summary).annotated_summary;
        prop_assert_eq!(annotated.matches("[Sigma Validation]").count(), 1 + summary.matches("[Sigma Validation]").count());
    }
}
