//! Every vector of the memory profiles, if the vectors are there.

use serde_json::Value;

#[test]
fn every_memory_vector_passes() {
    let folder = std::env::var_os("ACPDB_SHARED").map_or_else(|| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), Into::into).join("conformance");
    let mut count = 0;
    for file in ["memory.json", "corrections.json"] {
        let Ok(text) = std::fs::read_to_string(folder.join(file)) else {
            println!("skipped: no {file} beside the repository");
            continue;
        };
        for vector in serde_json::from_str::<Vec<Value>>(&text).unwrap() {
            let found = acpdb_tests::conformance::memory::run(&vector);
            let sane = vector.get("sane");
            for (field, recorded) in vector["expected"].as_object().unwrap() {
                let right = sane.and_then(|sane| sane.get(field)).unwrap_or(recorded);
                assert_eq!(found.get(field), Some(right), "{} {field}", vector["name"]);
            }
            count += 1;
        }
    }
    println!("{count} vectors");
}
