;; Finds something and traps.
(func $run (param $target i32) (result i32)
  (call $fail 'hostile.holds' 'find_item' 'acme.broken' (i32.const -1))
  unreachable)
