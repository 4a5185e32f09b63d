;; Judges a check that it did not declare.
(func $run (param $target i32) (result i32)
  (call $fail 'hostile.secret' '' 'acme.broken' (i32.const -1))
  (call $finish))
