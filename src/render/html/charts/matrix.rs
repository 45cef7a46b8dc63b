//! An amount for each pair, such as who sends how much to whom: drawn as squares, or as pixels when there are many.

use std::fmt::Write as _;
use std::io::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use gyan_results::{Number, Unit};
use maud::{Markup, html};

use super::super::super::text::{number, text};
use super::{below, rectangle, round, svg, swatch};
use crate::document::page::pictures::{Chart, Matrix};

/// A matrix of more rows is an image.
const SQUARES_AT_MOST: usize = 24;
/// The height of letters per row.
const LETTER: f64 = 0.28;
/// Limit for the data inside a page that names the numbers of an image: without it they are only in the tables.
const NUMBERS_AT_MOST: usize = 100_000;

pub(super) fn drawn(matrix: &Matrix, of: &Chart, id: &str) -> Markup {
    let most = matrix.cells.iter().copied().max().unwrap_or(0);
    let least = matrix.cells.iter().copied().filter(|&cell| cell > 0).min().unwrap_or(0);
    let shown = |cell: u64| in_unit(matrix, cell);
    let side = matrix.side;
    let name = |at: usize| matrix.names.get(at).map_or("", String::as_str);
    let drawing = if side <= SQUARES_AT_MOST {
        // Short names go next to the squares; below and above there is room for them.
        let (are_short, letter) =
            (matrix.names.iter().all(|name| name.len() <= 4), side as f64 * LETTER);
        let margin = if are_short { 2.4 * letter } else { 0.0 };
        let mut marks = String::new();
        for at in (0..side).filter(|_| are_short) {
            let (name, middle) = (html! { (name(at)) }.into_string(), at as f64 * 10.0 + 5.0);
            for (x, y) in [(middle, -0.6 * letter), (-1.3 * letter, middle + 0.35 * letter)] {
                let _ = write!(
                    marks,
                    "<text x=\"{}\" y=\"{}\" font-size=\"{}\">{name}</text>",
                    round(x),
                    round(y),
                    round(letter)
                );
            }
        }
        for (at, &cell) in matrix.cells.iter().enumerate() {
            let (from, to) = (at / side, at % side);
            let about = sentence(matrix, at, [&who(matrix, from), &who(matrix, to), &shown(cell)]);
            let class = if cell == 0 {
                "none".to_owned()
            } else {
                format!("v{}", level(cell, least, most))
            };
            let square = [to as f64 * 10.0 + 0.25, from as f64 * 10.0 + 0.25, 9.5, 9.5];
            rectangle(&mut marks, &class, square, &about);
        }
        let whole = side as f64 * 10.0 + margin;
        let view_box = format!("{0} {0} {1} {1}", round(-margin), round(whole));
        svg(of, id, "matrix", &view_box, false, &marks)
    } else {
        let alternative = format!("{}: {}", text(&of.title), text(&of.says));
        let data = STANDARD.encode(image(matrix, least, most));
        let numbers = numbers(matrix).filter(|numbers| numbers.len() <= NUMBERS_AT_MOST);
        html! {
            img.matrix src={ "data:image/png;base64," (data) } width=(side) height=(side) alt=(alternative)
                data-numbers=[numbers];
        }
    };
    let corners = format!(
        "columns: {}, rows: {}; {} at the top left, {} at the bottom right",
        matrix.words.columns,
        matrix.words.rows,
        name(0),
        name(side - 1)
    );
    html! {
        div.square { (drawing) }
        (below(&[corners]))
        ul.legend {
            li { (swatch("none")) " " (matrix.words.nothing) }
            @if most > least { li { (swatch("v0")) " " (shown(least)) } }
            li { (swatch("v9")) " " (shown(most)) }
            @if most > least { li { "logarithmic" } }
        }
    }
}

/// An amount to read.
fn in_unit(matrix: &Matrix, cell: u64) -> String {
    let amount = match matrix.unit {
        Unit::Seconds => Number::Double(cell as f64 * 1e-9),
        _ => Number::Integer(cell.into()),
    };
    number(matrix.unit, amount)
}

/// A row or column in a sentence: `rank 3`, `ranks 0-2`.
fn who(matrix: &Matrix, at: usize) -> String {
    let name = matrix.names.get(at).map_or("", String::as_str);
    match matrix.words.noun {
        "" => name.to_owned(),
        // What has a noun is named by numbers.
        noun if name.contains('-') => format!("{noun}s {name}"),
        noun => format!("{noun} {name}"),
    }
}

/// What a cell means. `of`: row, column and amount.
fn sentence(matrix: &Matrix, at: usize, of: [&str; 3]) -> String {
    let [row, column, cell] = of;
    let kind = matrix.kinds.get(at).map_or(0, |&kind| kind.into());
    let sentence = matrix.words.sentences.get(kind).copied().unwrap_or("");
    let piece = |piece: &'static str| match piece {
        "ROW" => row.to_owned(),
        "COLUMN" => column.to_owned(),
        "CELL" => cell.to_owned(),
        piece => piece.to_owned(),
    };
    sentence.split('|').map(piece).collect()
}

/// The data that the script shows when one points at an image: a zlib stream in Base64 with a line each for the
/// unit, the names, the cells, the sentences and which one is that of each cell, separated by tabs.
fn numbers(matrix: &Matrix) -> Option<String> {
    let unit = match matrix.unit {
        Unit::Bytes => " bytes",
        _ => "",
    };
    let names: Vec<String> = (0..matrix.side).map(|at| text(&who(matrix, at).into())).collect();
    // Seconds have their unit, the one that suits each.
    let cell = |&cell: &u64| match matrix.unit {
        Unit::Seconds => in_unit(matrix, cell),
        _ => cell.to_string(),
    };
    let cells: Vec<String> = matrix.cells.iter().map(cell).collect();
    let sentences = matrix.words.sentences;
    let kinds: Vec<String> = match sentences.len() {
        ..2 => Vec::new(),
        _ => matrix.kinds.iter().map(u8::to_string).collect(),
    };
    let rows = [&*names.join("\t"), &cells.join("\t"), &sentences.join("\t"), &kinds.join("\t")];
    let lines = [unit, &rows.join("\n")].join("\n");
    let mut stream = ZlibEncoder::new(Vec::new(), Compression::default());
    stream
        .write_all(lines.as_bytes())
        .and_then(|()| stream.finish())
        .ok()
        .map(|of| STANDARD.encode(of))
}

/// One of ten levels, on a logarithmic scale.
// From 0 to 9.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn level(cell: u64, least: u64, most: u64) -> usize {
    if most <= least {
        return 9;
    }
    let part = (octaves(cell) - octaves(least)) / (octaves(most) - octaves(least));
    (part * 9.0).round().clamp(0.0, 9.0) as usize
}

/// The logarithm to the base 2, linear between powers of two: close enough for ten colours. (The C library's
/// function would need glibc 2.29.)
fn octaves(number: u64) -> f64 {
    let whole = number.max(1).ilog2();
    f64::from(whole) + number.max(1) as f64 / (1_u64 << whole) as f64 - 1.0
}

/// The dark part of viridis, which is visible on white, from the least to the most: the same colours as in the
/// style sheet. Zero is white.
const VIRIDIS: [[u8; 3]; 11] = [
    [255, 255, 255],
    [0x22, 0xa8, 0x84],
    [0x1f, 0x98, 0x8b],
    [0x23, 0x88, 0x8e],
    [0x2a, 0x78, 0x8e],
    [0x31, 0x68, 0x8e],
    [0x39, 0x56, 0x8c],
    [0x41, 0x44, 0x87],
    [0x47, 0x2f, 0x7d],
    [0x48, 0x1a, 0x6c],
    [0x44, 0x01, 0x54],
];

/// A PNG with one pixel per cell.
fn image(matrix: &Matrix, least: u64, most: u64) -> Vec<u8> {
    let mut file = Vec::new();
    let side = u32::try_from(matrix.side).unwrap_or(0);
    let place = |&cell: &u64| match cell {
        0 => 0,
        // At most 10.
        cell => u8::try_from(level(cell, least, most) + 1).unwrap_or(0),
    };
    let pixels: Vec<u8> = matrix.cells.iter().map(place).collect();
    let mut encoder = png::Encoder::new(&mut file, side, side);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(VIRIDIS.concat());
    // Writing to memory cannot fail, and there are as many pixels as the size says.
    let _ = encoder.write_header().and_then(|mut writer| writer.write_image_data(&pixels));
    file
}

#[cfg(test)]
mod tests {
    use crate::document::page::pictures::{MatrixWords, Picture};

    use super::*;

    const WORDS: MatrixWords = MatrixWords {
        rows: "ranks that wait",
        columns: "ranks that are late",
        noun: "rank",
        nothing: "none",
        sentences: &["nothing of |ROW| for |COLUMN", "ROW| waited |CELL| for |COLUMN| to send"],
    };

    /// Each row waited for the one before it.
    fn waited(side: usize) -> Matrix {
        let amount = |at: usize| if at / side == at % side + 1 { 2_100_000_000 } else { 0 };
        let cells: Vec<u64> = (0..side * side).map(amount).collect();
        let kinds = cells.iter().map(|&cell| (cell > 0).into()).collect();
        let name = |at| if at == 0 { "0-2".to_owned() } else { format!("{}", at + 2) };
        let names = (0..side).map(name).collect();
        Matrix { unit: Unit::Seconds, side, cells, kinds, names, words: WORDS }
    }

    #[test]
    fn a_square_says_who_waited_how_many_seconds_for_whom() {
        let (few, of) = (waited(3), Chart::new("Who?", "all", Picture::Matrix(waited(3))));
        let drawing = drawn(&few, &of, "id").into_string();
        for said in [
            "<title>rank 3 waited 2.10 s for ranks 0-2 to send</title>",
            "<title>rank 4 waited 2.10 s for rank 3 to send</title>",
            "<title>nothing of ranks 0-2 for rank 4</title>",
            "columns: ranks that are late, rows: ranks that wait; 0-2 at the top left",
            "</svg> 2.10 s</li>",
            "</svg> none</li>",
        ] {
            assert!(drawing.contains(said), "{said}: {drawing}");
        }
        assert_eq!(drawing.matches("class=\"v9\"").count(), 3, "two squares and the legend");
    }

    #[test]
    fn an_image_has_the_sentences_for_its_pixels() {
        let data = STANDARD.decode(numbers(&waited(30)).unwrap()).unwrap();
        let mut said = String::new();
        std::io::Read::read_to_string(&mut flate2::read::ZlibDecoder::new(&*data), &mut said)
            .unwrap();
        let lines: Vec<Vec<&str>> = said.split('\n').map(|of| of.split('\t').collect()).collect();
        let [unit, names, cells, sentences, kinds] = lines.try_into().unwrap();
        assert_eq!((unit, names[..2].join(" ")), (vec![""], "ranks 0-2 rank 3".to_owned()));
        assert_eq!((names.len(), cells.len(), kinds.len()), (30, 900, 900));
        assert_eq!((cells[30], kinds[30], kinds[31]), ("2.10 s", "1", "0"));
        assert_eq!(sentences, WORDS.sentences);
    }

    #[test]
    fn the_least_and_the_most_are_at_the_ends_of_the_scale() {
        assert_eq!((level(1, 1, 1000), level(1000, 1, 1000)), (0, 9));
        assert_eq!(level(7, 7, 7), 9);
    }

    #[test]
    fn the_colours_of_images_are_those_of_the_style() {
        let style = include_str!("../style.css");
        for (at, [red, green, blue]) in VIRIDIS.iter().skip(1).enumerate() {
            let rule = format!(".v{at}{{fill:#{red:02x}{green:02x}{blue:02x}}}");
            assert!(style.contains(&rule), "{rule}");
        }
    }

    #[test]
    fn an_image_has_a_pixel_for_each_cell() {
        let side = 30;
        let cells = (0..side * side).map(|at| at as u64).collect();
        let matrix = Matrix { cells, ..waited(side) };
        let file = image(&matrix, 1, 899);
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (30, 30));
        assert_eq!((pixels[0], pixels[1], pixels[899]), (0, 1, 10));
    }
}
