;; Failed at its second request of one.
(func $run (param $target i32) (result i32)
  (call $fail 'hostile.holds' '' 'acme.broken' (i32.const -1))
  (drop (call $finish))
  (i32.store8 (i32.const 72) (i32.const 1))
  (i32.store (i32.const 76) (i32.const 2))
  (i32.const 64))
