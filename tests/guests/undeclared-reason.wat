;; Gives a reason that it did not declare.
(func $run (param $target i32) (result i32)
  (call $fail 'hostile.holds' '' 'acme.the-password-is-swordfish' (i32.const -1))
  (call $finish))
