//! Which columns of an archive's table are read, and how? One file after the other, only the columns that are asked for.
//!
//! A column that a file does not have is empty: files of other versions stay readable.

use std::collections::HashMap;
use std::io;

use bytes::Bytes;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use crate::archive::data_set::{ArchiveTable, replaced};
use crate::archive::days::day_of;
use crate::archive::store::{Store, StoredFile};
use crate::error::{Error, reason};

/// The code of a text that is null.
pub(crate) const NOTHING: u32 = u32::MAX;
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct TableFile {
    pub(crate) day: i32,
    /// In the archive.
    pub(crate) path: String,
}

/// The files of a table from one day to another, both included, in the order of their days. None when there is no such table.
pub(crate) fn table_files(
    store: &dyn Store,
    table: ArchiveTable,
    days: [i32; 2],
) -> Result<Vec<TableFile>, Error> {
    let [name, _] = table.about();
    let day = |file: &StoredFile| {
        let day = file.path.strip_prefix(name)?.strip_prefix("/day=")?.split('/').next()?;
        day_of(day).filter(|day| (days[0]..=days[1]).contains(day))
    };
    let listed = || {
        let mut files = store.list(name)?;
        files.retain(|file| day(file).is_some());
        let replaced = replaced(store, &files)?;
        files.retain(|file| !replaced.contains(&file.path));
        Ok(files)
    };
    let remedy = "name the archive that gyan archive ingest fills";
    let files = listed().map_err(|error: io::Error| Error::new(name, reason(&error), remedy))?;
    let mut files: Vec<TableFile> = files
        .into_iter()
        .filter_map(|file| Some(TableFile { day: day(&file)?, path: file.path }))
        .collect();
    files.sort();
    Ok(files)
}

/// What a column is read as.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted {
    /// Codes of texts, which recur.
    Text(&'static str),
    /// Integers and doubles; NaN where there is none.
    Number(&'static str),
}

/// Texts as the numbers of their names.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    /// One for each row; [`NOTHING`] where it is null.
    pub(crate) codes: Vec<u32>,
    pub(crate) names: Vec<String>,
}

impl Texts {
    /// The text in a row; none where it is null.
    pub(crate) fn text(&self, row: usize) -> Option<&str> {
        self.names.get(*self.codes.get(row)? as usize).map(String::as_str)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub(crate) rows: usize,
    /// In the order in which they were asked for.
    pub(crate) texts: Vec<Texts>,
    pub(crate) numbers: Vec<Vec<f64>>,
}

/// Reads columns of a file.
pub(crate) fn read(store: &dyn Store, path: &str, wanted: &[Wanted]) -> Result<Columns, Error> {
    let open = || -> Result<Columns, ParquetError> {
        let reader = SerializedFileReader::new(Bytes::from(store.read(path)?))?;
        let mut columns = Columns::default();
        for of in wanted {
            let is_text = matches!(of, Wanted::Text(_));
            columns.texts.extend(is_text.then(Texts::default));
            columns.numbers.extend((!is_text).then(Vec::new));
        }
        let mut known: Vec<HashMap<Box<[u8]>, u32>> =
            columns.texts.iter().map(|_| HashMap::new()).collect();
        for group in 0..reader.num_row_groups() {
            let group = reader.get_row_group(group)?;
            read_group(group.as_ref(), wanted, &mut columns, &mut known)?;
        }
        Ok(columns)
    };
    open().map_err(|error| {
        let remedy = "try again; if it stays so, ingest the spool of that day again";
        Error::new(path, error, remedy)
    })
}

fn read_group(
    group: &dyn RowGroupReader,
    wanted: &[Wanted],
    columns: &mut Columns,
    known: &mut [HashMap<Box<[u8]>, u32>],
) -> Result<(), ParquetError> {
    let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
    columns.rows += rows;
    let schema = group.metadata().schema_descr();
    let place = |name: &str| schema.columns().iter().position(|column| column.name() == name);
    let (mut text, mut number) = (0, 0);
    for of in wanted {
        match of {
            Wanted::Text(name) => {
                let (texts, known) = (&mut columns.texts[text], &mut known[text]);
                text += 1;
                let reader = place(name).map(|at| group.get_column_reader(at)).transpose()?;
                if let Some(ColumnReader::ByteArrayColumnReader(reader)) = reader {
                    read_texts(reader, rows, texts, known)?;
                }
                texts.codes.resize(columns.rows, NOTHING);
            }
            Wanted::Number(name) => {
                let numbers = &mut columns.numbers[number];
                number += 1;
                match place(name).map(|at| group.get_column_reader(at)).transpose()? {
                    Some(ColumnReader::DoubleColumnReader(reader)) => {
                        each(reader, rows, |value| numbers.push(value.unwrap_or(f64::NAN)))?;
                    }
                    Some(ColumnReader::Int64ColumnReader(reader)) => {
                        each(reader, rows, |value| {
                            numbers.push(value.map_or(f64::NAN, |integer| integer as f64));
                        })?;
                    }
                    _ => {}
                }
                numbers.resize(columns.rows, f64::NAN);
            }
        }
    }
    Ok(())
}

/// Hands on each value, none where it is null.
fn each<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    mut take: impl FnMut(Option<T::T>),
) -> Result<(), ParquetError> {
    let (mut levels, mut values) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    let mut left = rows;
    while left > 0 {
        levels.clear();
        values.clear();
        let (read, present, _) = reader.read_records(left, Some(&mut levels), None, &mut values)?;
        if read == 0 {
            return Err(ParquetError::EOF("has fewer rows than it says".into()));
        }
        left = left.saturating_sub(read);
        let mut present_values = values.drain(..);
        if present == read {
            for value in present_values {
                take(Some(value));
            }
        } else {
            for level in &levels {
                take(if *level > 0 { present_values.next() } else { None });
            }
        }
    }
    Ok(())
}

fn read_texts(
    reader: ColumnReaderImpl<parquet::data_type::ByteArrayType>,
    rows: usize,
    texts: &mut Texts,
    known: &mut HashMap<Box<[u8]>, u32>,
) -> Result<(), ParquetError> {
    let mut last: Option<(ByteArray, u32)> = None;
    each(reader, rows, |value| {
        let Some(value) = value else { return texts.codes.push(NOTHING) };
        // Rows of a job are beside each other, and so are equal texts.
        if let Some((_, code)) = last.as_ref().filter(|(text, _)| text.data() == value.data()) {
            return texts.codes.push(*code);
        }
        let code = known.get(value.data()).copied().unwrap_or_else(|| {
            texts.names.push(String::from_utf8_lossy(value.data()).into_owned());
            let code = u32::try_from(texts.names.len() - 1).unwrap_or(NOTHING);
            known.insert(value.data().into(), code);
            code
        });
        texts.codes.push(code);
        last = Some((value, code));
    })
}
