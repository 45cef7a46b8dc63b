//! How does a page of the manual, which is in Markdown, read on a terminal? Headings stand out, text is wrapped and
//! indented, tables are aligned, and blocks of code stay as they are.
//!
//! Pictures are only named, and comments left out.

use anstyle::{Effects, Style};
use comfy_table::{ContentArrangement, LineStyle, Table, presets};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use textwrap::WordSplitter;

const HEADING: Style = Style::new().effects(Effects::BOLD);
const EMPHASIS: Style = Style::new().effects(Effects::ITALIC);
/// Text and tables are indented, headings are not, code is indented twice.
const INDENT: usize = 2;

/// The page as text with styles, of at most so many columns where nothing in it is longer.
pub(crate) fn prose(markdown: &str, width: usize) -> String {
    let mut page = ManualPage { width, ..ManualPage::default() };
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        page.take(event);
    }
    page.out
}

#[derive(Default)]
struct ManualPage {
    width: usize,
    out: String,
    /// What is in the paragraph, heading, cell or block so far.
    text: String,
    /// The number of the next item of each list that this is in; none for bullets.
    lists: Vec<Option<u64>>,
    /// Where the text of each of these lists begins.
    indents: Vec<usize>,
    /// What stands before the first line of an item.
    marker: Option<String>,
    rows: Vec<Vec<String>>,
    is_in_table: bool,
    /// Where a link leads that this is in.
    target: String,
}

impl ManualPage {
    fn take(&mut self, event: Event) {
        match event {
            Event::Start(tag) => self.begin(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text.push_str(&text),
            Event::Code(code) => self.styled(HEADING, &code),
            Event::SoftBreak => self.text.push(' '),
            Event::HardBreak => self.text.push('\n'),
            _ => {}
        }
    }

    fn begin(&mut self, tag: Tag) {
        match tag {
            Tag::Heading { .. } | Tag::Paragraph => self.gap(),
            Tag::CodeBlock(_) => {
                self.paragraph();
                self.gap();
            }
            Tag::List(first) => {
                self.paragraph();
                if self.lists.is_empty() {
                    self.gap();
                }
                self.lists.push(first);
                self.indents.push(if first.is_some() { 3 } else { 2 });
            }
            Tag::Item => {
                let marker = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "- ".to_owned(),
                };
                self.marker = Some(marker);
            }
            Tag::Table(_) => {
                self.gap();
                self.is_in_table = true;
            }
            Tag::TableHead | Tag::TableRow => self.rows.push(Vec::new()),
            Tag::Emphasis => self.style(EMPHASIS),
            Tag::Strong => self.style(HEADING),
            Tag::Link { dest_url, .. } => self.target = dest_url.into_string(),
            Tag::Image { .. } => self.text.push_str("[picture: "),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                let title = std::mem::take(&mut self.text);
                self.line(&format!("{HEADING}{title}{HEADING:#}"));
            }
            TagEnd::Paragraph | TagEnd::Item => self.paragraph(),
            TagEnd::CodeBlock => {
                let code = std::mem::take(&mut self.text);
                let indent = self.indent() + INDENT;
                for line in code.lines() {
                    self.line(&format!("{:indent$}{line}", ""));
                }
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.indents.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.text);
                self.rows.last_mut().into_iter().for_each(|row| row.push(cell.clone()));
            }
            TagEnd::Table => self.table(),
            TagEnd::Emphasis => self.style_end(EMPHASIS),
            TagEnd::Strong => self.style_end(HEADING),
            TagEnd::Link if self.target.contains("://") && !self.text.ends_with(&self.target) => {
                self.text.extend([" (", &self.target, ")"]);
            }
            TagEnd::Image => self.text.push(']'),
            _ => {}
        }
    }

    fn styled(&mut self, style: Style, text: &str) {
        self.style(style);
        self.text.push_str(text);
        self.style_end(style);
    }

    /// Cells are measured, so they have no styles.
    fn style(&mut self, style: Style) {
        if !self.is_in_table {
            self.text += &style.render().to_string();
        }
    }

    fn style_end(&mut self, style: Style) {
        if !self.is_in_table {
            self.text += &style.render_reset().to_string();
        }
    }

    fn indent(&self) -> usize {
        INDENT + self.indents.iter().sum::<usize>()
    }

    fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    /// An empty line, but at the beginning and after another.
    fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") && self.marker.is_none() {
            self.out.push('\n');
        }
    }

    fn paragraph(&mut self) {
        let text = std::mem::take(&mut self.text);
        if text.is_empty() {
            return;
        }
        let rest = " ".repeat(self.indent());
        let marker = self.marker.take().unwrap_or_default();
        let first = format!("{}{marker}", " ".repeat(self.indent() - marker.len()));
        let options = textwrap::Options::new(self.width).word_splitter(WordSplitter::NoHyphenation);
        let options = options.initial_indent(&first).subsequent_indent(&rest).break_words(false);
        for line in textwrap::wrap(&text, options) {
            self.line(&line);
        }
    }

    fn table(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        self.is_in_table = false;
        let columns = rows.first().map_or(0, Vec::len);
        let longest = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| textwrap::core::display_width(cell)).max().unwrap_or(0) + INDENT
        };
        let width = self.width.saturating_sub(INDENT);
        let fits = (0..columns).map(longest).sum::<usize>() <= width + INDENT;
        let style = presets::NOTHING.header_separator(LineStyle::none().fill('─').junction('─'));
        // Rows of several lines are told apart by an empty one.
        let style = if fits {
            style
        } else {
            style.row_separator(LineStyle::none().fill(' ').junction(' '))
        };
        let mut table = Table::new();
        table.load_style(style).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
        let mut rows = rows.into_iter();
        table.set_header(rows.next().unwrap_or_default());
        table.add_rows(rows);
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        for line in table.lines() {
            self.line(&format!("{:INDENT$}{line}", ""));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(markdown: &str, width: usize) -> String {
        anstream::adapter::strip_str(&prose(markdown, width)).to_string()
    }

    #[test]
    fn text_is_wrapped_and_code_is_not() {
        let page = "# A *title*\n\nSome `code` in a text\nof two lines.\n\n```console\n$ gyan report a-long-name\n```\n";
        let expected = "\
A title

  Some code in a
  text of two lines.

    $ gyan report a-long-name
";
        assert_eq!(plain(page, 20), expected);
    }

    #[test]
    fn items_hang_and_links_say_where_they_lead() {
        let page =
            "- one [page](x.md)\n- [two](https://example.org)\n  1. three\n\n![A page](a.png)\n";
        let expected =
            "  - one page\n  - two (https://example.org)\n     1. three\n\n  [picture: A page]\n";
        assert_eq!(plain(page, 80), expected.replace("     1.", "    1."));
    }

    #[test]
    fn tables_fit_into_the_width() {
        let page = "| name | meaning |\n| :-- | :-- |\n| `a` | some words that are too many |\n| b | few |\n";
        let text = plain(page, 30);
        assert!(text.lines().all(|line| line.chars().count() <= 30), "{text}");
        assert!(
            text.contains("\n  a      some words that are\n         too many\n\n  b      few\n"),
            "{text}"
        );
    }
}
