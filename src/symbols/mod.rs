//! Which function and which line does a return address belong to? The answer is in the file that the program
//! ran from, so it is available only while that file exists and has not been rebuilt.
//!
//! Nothing in here is an error: an address without a name is shown as object and offset, and the reason is
//! given once per object.

pub(crate) mod paths;
pub(crate) mod sites;
pub(crate) mod stacks;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use addr2line::{FunctionName, Loader, demangle_auto, gimli};
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, ReadCache};
use serde::Serialize;

use crate::error::reason;

/// A function on the call stack.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct StackFrame {
    /// Its name, demangled; `object+0x1234` when it has none.
    pub(crate) function: String,
    /// The source file, as the compiler was told.
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    /// How far into the function the call is, where the line is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) offset: Option<u64>,
    /// Whether the compiler put it into the function of the next frame.
    pub(crate) inlined: bool,
    /// Whether `function` is a name, not a mere address.
    #[serde(skip)]
    pub(crate) is_named: bool,
}

impl StackFrame {
    /// A frame of which only the address is known.
    pub(crate) fn nameless(text: &str) -> StackFrame {
        StackFrame {
            function: text.to_owned(),
            file: None,
            line: None,
            offset: None,
            inlined: false,
            is_named: false,
        }
    }

    fn of_function(name: &str) -> StackFrame {
        StackFrame { is_named: true, ..StackFrame::nameless(name) }
    }

    /// The name of code that is in no object: Python's functions are `py::FUNCTION:FILE`, followed by `:LINE` if
    /// that is known.
    fn of_code(name: &str) -> StackFrame {
        let python = name.strip_prefix("py::").and_then(|name| name.split_once(':'));
        let Some((function, file)) = python else { return StackFrame::of_function(name) };
        let line = file.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
        let (file, line) = line.map_or((file, None), |(file, line)| (file, Some(line)));
        StackFrame { file: Some(file.to_owned()), line, ..StackFrame::of_function(function) }
    }

    /// `halo.c:42`, or else the function, as short as it can be told from others.
    pub(crate) fn short_place(&self) -> String {
        file_and_line(self.file.as_deref(), self.line).unwrap_or_else(|| {
            let function = short_function(&self.function);
            StackFrame { function, offset: None, ..self.clone() }.place()
        })
    }

    /// `halo.c:42 (exchange)`: the file without its folders.
    pub(crate) fn place(&self) -> String {
        let file = self.file.as_ref().map(|file| file.rsplit('/').next().unwrap_or(file));
        match (file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line} ({})", self.function),
            (Some(file), None) => format!("{file} ({})", self.function),
            _ => match self.offset {
                Some(offset) => format!("{}+{offset:#x}", self.function),
                None => self.function.clone(),
            },
        }
    }
}

/// `halo.c:42`, if both are known.
pub(crate) fn file_and_line(file: Option<&str>, line: Option<u32>) -> Option<String> {
    let (file, line) = file.zip(line)?;
    Some(format!("{}:{line}", file.rsplit('/').next().unwrap_or(file)))
}

/// The function without arguments and outer namespaces: `CommBrick::borders`.
pub(crate) fn short_function(name: &str) -> String {
    if name.starts_with('<') || name.contains("operator") {
        return name.to_owned();
    }
    let mut depth = 0_usize;
    let mut short = String::new();
    for letter in name.replace("(anonymous namespace)::", "").chars() {
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 => break,
            // What stands before is the type of the result.
            ' ' if depth == 0 => short.clear(),
            _ if depth == 0 => short.push(letter),
            _ => {}
        }
    }
    let parts: Vec<&str> = short.split("::").collect();
    parts.get(parts.len().saturating_sub(2)..).unwrap_or_default().join("::")
}

/// The objects of a run, each opened once.
#[derive(Default)]
pub(crate) struct Symbols {
    /// By path and build id: the nodes of a run may have different files.
    objects: BTreeMap<(String, Option<String>), Object>,
}

struct Object {
    /// None when the file yields nothing.
    loader: Option<Box<Loader>>,
    /// Where functions end, by where they begin, if only those for other files are known (`strip`).
    ends: BTreeMap<u64, u64>,
    /// What a reader of its frames should know.
    remark: Option<String>,
}

impl Symbols {
    /// The functions that contain the call before `return_address`, the innermost first: inlined functions come
    /// before the one that contains them. At least one.
    ///
    /// The address is relative to the symbol table of the object, which had this build id when it ran.
    pub(crate) fn frames(
        &mut self,
        path: &str,
        build_id: Option<&str>,
        return_address: u64,
    ) -> Vec<StackFrame> {
        let object = self
            .objects
            .entry((path.to_owned(), build_id.map(str::to_owned)))
            .or_insert_with(|| Object::open(Path::new(path), build_id));
        object.frames(path, return_address)
    }

    /// The same for the call at an offset of a file that is mapped as a program or library.
    pub(crate) fn frames_at(&mut self, path: &str, offset: u64) -> Vec<StackFrame> {
        let address = address_at(Path::new(path), offset).unwrap_or(offset);
        self.frames(path, None, address + 1)
    }

    /// What stopped addresses from getting names and lines: at most one sentence an object.
    pub(crate) fn remarks(&self) -> impl Iterator<Item = &str> {
        self.remarks_on(|_| true)
    }

    /// The same for some objects, by path.
    fn remarks_on(&self, wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = &str> {
        let objects = self.objects.iter().filter(move |((path, _), _)| wanted(path));
        objects.filter_map(|(_, object)| object.remark.as_deref())
    }
}

impl Object {
    fn open(path: &Path, build_id: Option<&str>) -> Object {
        let unusable = |why: String| Object {
            loader: None,
            ends: BTreeMap::new(),
            remark: Some(format!("{}: {why}", path.display())),
        };
        let file = match gyan_results::open_regular(path) {
            Ok(file) => file,
            Err(error) => {
                return unusable(format!(
                    "{}; its functions are shown as addresses",
                    reason(&error)
                ));
            }
        };
        if let (Some(then), Some(now)) = (build_id, build_id_of(file))
            && !then.eq_ignore_ascii_case(&now)
        {
            return unusable(
                "was built anew since the run, so its functions are shown as addresses".into(),
            );
        }
        match Loader::new(path) {
            Ok(loader) => Object {
                ends: if is_stripped(&loader) { ends(path) } else { BTreeMap::new() },
                loader: Some(Box::new(loader)),
                remark: None,
            },
            Err(_) => unusable("has no symbols that can be read".into()),
        }
    }

    fn frames(&mut self, path: &str, return_address: u64) -> Vec<StackFrame> {
        // After the call there may be another line, or another function.
        let call = return_address.saturating_sub(1);
        if let Some(loader) = &self.loader {
            let frames = of_debug_information(loader, call);
            if !frames.is_empty() {
                return frames;
            }
            if self.remark.is_none() && loader.get_section_range(b".debug_info").is_none() {
                self.remark = Some(format!(
                    "{path}: has no debug information; compile with -g to see files and lines"
                ));
            }
        }
        let loader = self.loader.as_ref();
        if let Some(frame) = loader.and_then(|loader| of_symbol_table(loader, &self.ends, call)) {
            return vec![frame];
        }
        let name =
            Path::new(path).file_name().map_or_else(|| path.into(), |name| name.to_string_lossy());
        vec![StackFrame::nameless(&format!("{name}+{return_address:#x}"))]
    }
}

/// Empty when the debug information knows no function at this address.
fn of_debug_information(loader: &Loader, call: u64) -> Vec<StackFrame> {
    let mut frames = Vec::new();
    let Ok(mut found) = loader.find_frames(call) else { return frames };
    while let Ok(Some(frame)) = found.next() {
        let Some(function) = frame.function.as_ref().and_then(function_name) else { continue };
        let location = frame.location.as_ref();
        frames.push(StackFrame {
            function,
            file: location.and_then(|location| location.file).map(str::to_owned),
            line: location.and_then(|location| location.line),
            offset: None,
            inlined: true,
            is_named: true,
        });
    }
    if let Some(outermost) = frames.last_mut() {
        outermost.inlined = false;
    }
    frames
}

fn is_stripped(loader: &Loader) -> bool {
    loader.get_section_range(b".symtab").is_none()
}

/// Where the functions end that a file offers to others.
fn ends(path: &Path) -> BTreeMap<u64, u64> {
    let Ok(file) = File::open(path) else { return BTreeMap::new() };
    let cache = ReadCache::new(file);
    let Ok(object) = object::File::parse(&cache) else { return BTreeMap::new() };
    let symbols = object.dynamic_symbols().filter(object::ObjectSymbol::is_definition);
    symbols.map(|symbol| (symbol.address(), symbol.address() + symbol.size())).collect()
}

/// The symbol before the address. Without the full table (`strip`), functions without a symbol may follow it: if
/// the address is not inside of the function, the distance is shown instead of a name.
fn of_symbol_table(loader: &Loader, ends: &BTreeMap<u64, u64>, call: u64) -> Option<StackFrame> {
    let symbol = loader.find_symbol_info(call)?;
    let name = readable(symbol.name());
    let offset = call - symbol.address();
    let is_inside =
        !is_stripped(loader) || ends.get(&symbol.address()).is_some_and(|end| call < *end);
    Some(if is_inside {
        StackFrame { offset: Some(offset), ..StackFrame::of_function(&name) }
    } else {
        StackFrame::nameless(&format!("{name}+{offset:#x}"))
    })
}

fn function_name<R: gimli::Reader>(name: &FunctionName<R>) -> Option<String> {
    const FORTRAN: [gimli::DwLang; 6] = [
        gimli::DW_LANG_Fortran77,
        gimli::DW_LANG_Fortran90,
        gimli::DW_LANG_Fortran95,
        gimli::DW_LANG_Fortran03,
        gimli::DW_LANG_Fortran08,
        gimli::DW_LANG_Fortran18,
    ];
    let raw = name.raw_name().ok()?;
    let fortran = name.language.is_some_and(|language| FORTRAN.contains(&language));
    Some(if fortran { readable(raw.trim_end_matches('_')) } else { readable(&raw) })
}

/// The name as it is in the source, for C++, Rust and modules of Fortran (`__module_MOD_procedure`).
fn readable(name: &str) -> String {
    let module = name.strip_prefix("__").and_then(|name| name.split_once("_MOD_"));
    match module {
        Some((module, procedure)) => format!("{module}::{procedure}"),
        None => demangle_auto(name.into(), None).into_owned(),
    }
}

/// Whether a library defines `symbol` for others.
pub(crate) fn defines(library: &Path, is_wanted: impl Fn(&str) -> bool) -> bool {
    let Ok(file) = File::open(library) else { return false };
    let cache = ReadCache::new(file);
    let Ok(object) = object::File::parse(&cache) else { return false };
    let mut symbols = object.dynamic_symbols();
    symbols.any(|found| found.is_definition() && found.name().is_ok_and(&is_wanted))
}

/// The address, as in the symbol table, of what is at an offset of an object.
fn address_at(path: &Path, offset: u64) -> Option<u64> {
    let cache = ReadCache::new(gyan_results::open_regular(path).ok()?);
    let object = object::File::parse(&cache).ok()?;
    object.segments().find_map(|segment| {
        let (begin, size) = segment.file_range();
        let behind = offset.checked_sub(begin).filter(|behind| *behind < size)?;
        Some(segment.address() + behind)
    })
}

fn build_id_of(file: File) -> Option<String> {
    let cache = ReadCache::new(file);
    let object = object::File::parse(&cache).ok()?;
    let bytes = object.build_id().ok()??;
    Some(bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::process::Command;

    use tempfile::TempDir;

    use super::*;

    /// Prints the return address of the call in line 6, which the compiler inlines into `main`.
    const PROGRAM: &str = r#"#include <stdio.h>
__attribute__((noinline)) void here(void) {
    printf("%lx\n", (unsigned long)__builtin_return_address(0));
}
static inline __attribute__((always_inline)) void receive(void) {
    here();
}
int main(void) {
    receive();
    return 0;
}
"#;

    /// The program, compiled with `options`, and the address that it prints.
    fn compiled(options: &[&str]) -> (TempDir, String, u64) {
        let place = TempDir::new().unwrap();
        let source = place.path().join("program.c");
        fs::write(&source, PROGRAM).unwrap();
        let program = place.path().join("program");
        let mut compiler = Command::new("cc");
        // Then addresses in the file equal those in the process.
        compiler.args(["-O2", "-no-pie", "-Wl,--build-id"]).args(options).arg(&source);
        assert!(compiler.arg("-o").arg(&program).status().unwrap().success());
        let printed = Command::new(&program).output().unwrap().stdout;
        let address = u64::from_str_radix(String::from_utf8(printed).unwrap().trim(), 16).unwrap();
        (place, program.to_str().unwrap().to_owned(), address)
    }

    fn frame(function: &str, place: &TempDir, line: u32, inlined: bool) -> StackFrame {
        let file: PathBuf = place.path().join("program.c");
        let file = Some(file.to_str().unwrap().to_owned());
        StackFrame { file, line: Some(line), inlined, ..StackFrame::of_function(function) }
    }

    #[test]
    fn an_inlined_function_stands_before_the_one_it_is_in() {
        let (place, program, address) = compiled(&["-g"]);
        let id = build_id_of(File::open(&program).unwrap());
        assert!(id.is_some());
        let mut symbols = Symbols::default();
        let frames = symbols.frames(&program, id.as_deref(), address);
        assert_eq!(frames, [frame("receive", &place, 6, true), frame("main", &place, 9, false)]);
        assert_eq!(symbols.remarks().count(), 0);
    }

    #[test]
    fn without_debug_information_the_symbol_table_tells_the_function() {
        let (_place, program, address) = compiled(&["-g0"]);
        let mut symbols = Symbols::default();
        for _ in 0..2 {
            let frames = symbols.frames(&program, None, address);
            let main = StackFrame { offset: frames[0].offset, ..StackFrame::of_function("main") };
            assert_eq!(frames, [main]);
            assert!(frames[0].offset.is_some_and(|offset| offset > 0));
        }
        let remarks: Vec<&str> = symbols.remarks().collect();
        assert_eq!(remarks.len(), 1);
        assert!(remarks[0].contains("no debug information"), "{remarks:?}");
    }

    #[test]
    fn what_has_no_name_is_shown_as_object_and_offset() {
        let (place, _, address) = compiled(&["-g"]);
        let nameless = |object: &str| [StackFrame::nameless(&format!("{object}+{address:#x}"))];
        let mut symbols = Symbols::default();
        for (file, id, why) in [
            ("program", Some("00ff"), "was built anew"),
            ("gone/program", None, "no such file"),
            ("program.c", None, "no symbols"),
        ] {
            let path = place.path().join(file);
            let frames = symbols.frames(path.to_str().unwrap(), id, address);
            assert_eq!(frames, nameless(path.file_name().unwrap().to_str().unwrap()));
            assert!(symbols.remarks().any(|remark| remark.contains(why)), "{file}: {why}");
        }
    }

    #[test]
    fn of_a_stripped_program_no_name_is_made_up() {
        let (_place, program, address) = compiled(&["-s"]);
        let frames = Symbols::default().frames(&program, None, address);
        assert_eq!(frames.len(), 1);
        assert!(frames[0].function.contains("+0x"), "{frames:?}");
    }

    #[test]
    fn a_long_name_is_told_by_its_last_parts() {
        let short = |name| short_function(name);
        assert_eq!(short("LAMMPS_NS::CommBrick::forward_comm(int)"), "CommBrick::forward_comm");
        assert_eq!(short("void a::run<b::c<int>, d>(b::c<int>)"), "a::run");
        assert_eq!(short("a::(anonymous namespace)::step(int)"), "a::step");
        assert_eq!(short("halo::exchange"), "halo::exchange");
        assert_eq!(short("main"), "main");
        assert_eq!(short("a::operator()(int)"), "a::operator()(int)");
    }

    #[test]
    fn names_are_those_of_the_source() {
        assert_eq!(readable("_ZN4halo5Field8exchangeEi"), "halo::Field::exchange(int)");
        assert_eq!(readable("_ZN4halo8exchange17h0123456789abcdefE"), "halo::exchange");
        assert_eq!(readable("__halo_MOD_exchange"), "halo::exchange");
        assert_eq!(readable("exchange_"), "exchange_");
    }
}
