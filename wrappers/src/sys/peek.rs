//! How to read a value in memory that is not gyan's?

/// Element `index` of an array of `T` at `address`, which need not be aligned.
///
/// # Safety
///
/// There is an array of `T` at `address`, of any type that is valid whatever its bits, and it has
/// that element.
pub(crate) unsafe fn element<T: Copy>(address: usize, index: usize) -> T {
    let at = (address as *const T).wrapping_add(index);
    // SAFETY: the caller's.
    unsafe { at.read_unaligned() }
}

/// A handle or another word of 4 or 8 bytes: element `index` of an array of them at `address`.
///
/// # Safety
///
/// There is an array of words of this size at `address`, and it has that element.
pub(crate) unsafe fn word(address: usize, bytes: usize, index: usize) -> usize {
    if bytes == size_of::<u32>() {
        // SAFETY: the caller's.
        unsafe { element::<u32>(address, index) as usize }
    } else {
        // SAFETY: the caller's.
        unsafe { element::<usize>(address, index) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_both_widths_are_read() {
        let words = [0xffff_fff0_u32, 7, 8];
        let at = words.as_ptr() as usize;
        // SAFETY: the array has these elements.
        let word = |bytes, index| unsafe { word(at, bytes, index) };
        assert_eq!(word(4, 0), 0xffff_fff0);
        assert_eq!(word(4, 1), 7);
        assert_eq!(word(8, 0), 0x7_ffff_fff0);
    }
}
