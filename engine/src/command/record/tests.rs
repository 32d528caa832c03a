use super::*;

#[test]
fn tags_stand_at_the_end_and_name_the_whole_task() {
    for (text, task) in [
        ("out\n\n<!-- sigma-task: t1 -->", Some("t1")),
        ("<!-- sigma-task: t 1 -->\n ", Some("t 1")),
        ("<!-- sigma-task: a --> <!-- sigma-task: b -->", Some("b")),
        ("<!-- sigma-task: t1 --> more", None),
        ("<!-- sigma-task: a --> x -->", None),
        ("<!-- sigma-task:  -->", None),
        ("<!-- other: t1 -->", None),
        (" -->", None),
        ("", None),
    ] {
        assert_eq!(task_tag(text.as_bytes()).as_deref(), task, "{text:?}");
    }
}
