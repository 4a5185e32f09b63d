;; Cites an exchange that never was.
(func $run (param $target i32) (result i32)
  (call $fail 'hostile.holds' '' 'acme.broken' (i32.const 4000000))
  (call $finish))
