//! A picture in points instead of shapes, for places that show no SVG.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use crate::commands::{Code, Failure};

/// Points for each unit of the picture, so that it is sharp on dense screens.
const SCALE: f32 = 2.0;
/// Families without serifs that systems have, the likeliest first. A system may have no font under the standard's names.
const FAMILIES: &[&str] =
    &["Arial", "Helvetica", "DejaVu Sans", "Liberation Sans", "Noto Sans", "Segoe UI", "Cantarell"];

/// Draws with the fonts of the system.
pub(super) struct Painter {
    options: Options<'static>,
}

impl Painter {
    /// Fails before anything is read if the system has no font: a picture without its words is useless.
    pub(super) fn new() -> Result<Self, Failure> {
        let mut fonts = fontdb::Database::new();
        fonts.load_system_fonts();
        Self::with(fonts)
    }

    fn with(mut fonts: fontdb::Database) -> Result<Self, Failure> {
        let families = |face: &fontdb::FaceInfo| face.families.iter().map(|(name, _)| name.clone()).collect();
        let known: Vec<String> = fonts.faces().flat_map(|face| -> Vec<String> { families(face) }).collect();
        let found = FAMILIES.iter().find(|family| known.iter().any(|name| name == *family));
        let Some(family) = found.map(|family| (*family).to_owned()).or_else(|| known.first().cloned()) else {
            let failure =
                Failure::new(Code::Failure, "this system has no font to draw the words of a picture with");
            return Err(failure.hint("install one, such as DejaVu, or write an SVG: -o tokens.svg"));
        };
        fonts.set_sans_serif_family(family);
        Ok(Self { options: Options { fontdb: Arc::new(fonts), ..Options::default() } })
    }

    /// The picture as PNG.
    pub(super) fn png(&self, svg: &[u8]) -> Result<Vec<u8>, Failure> {
        let failed = |why: String| Failure::new(Code::Failure, format!("the picture cannot be drawn: {why}"));
        let tree = Tree::from_data(svg, &self.options).map_err(|error| failed(error.to_string()))?;
        let size = tree.size().to_int_size().scale_by(SCALE);
        let canvas = size.and_then(|size| Pixmap::new(size.width(), size.height()));
        let mut canvas = canvas.ok_or_else(|| failed("it has no size".to_owned()))?;
        resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut canvas.as_mut());
        canvas.encode_png().map_err(|error| failed(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A system without fonts gives an error, and a picture with words differs from one without.
    #[test]
    fn words_are_drawn_or_the_lack_of_fonts_is_said() {
        let error = Painter::with(fontdb::Database::new()).err().unwrap();
        assert!(error.message.contains("no font"), "{}", error.message);
        let painter = Painter::new().expect("this machine has a font");
        let picture = |text: &str| {
            let svg = format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"300\" height=\"60\" font-family=\"system-ui, sans-serif\">\
                 <text x=\"10\" y=\"40\" font-size=\"30\">{text}</text></svg>"
            );
            painter.png(svg.as_bytes()).unwrap()
        };
        let (empty, words) = (picture(""), picture("41 % was stale"));
        assert!(words.starts_with(b"\x89PNG\r\n\x1a\n") && words.len() > 2 * empty.len());
        assert!(painter.png(b"no picture").is_err());
    }
}
