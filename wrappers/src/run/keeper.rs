//! libgyan.so as a program: the keeper of a host.

use super::now::Looks;
use crate::delivery::keeper;

/// The entry point of libgyan.so as a program, which the dynamic loader jumps to: the words of the command line
/// are on the stack.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn gyan_keeper() -> ! {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!(
        "xor ebp, ebp",
        "mov rdi, rsp",
        "and rsp, -16",
        "call {main}",
        "ud2",
        main = sym main,
    );
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!(
        "mov x29, #0",
        "mov x30, #0",
        "mov x0, sp",
        "bl {main}",
        "brk #1",
        main = sym main,
    );
}

extern "C" fn main(stack: *const usize) -> ! {
    keeper::main(stack, &Looks)
}
